internal import Clocks
import EventLoop
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubSource
import TLSStream

// Calls that can be repeated, and what to do about those that failed.
extension PublishRun {
  private static var maxRefusals: Int { 5 }

  // MARK: Schema

  /// Throws `RunFailure`.
  ///
  /// - Parameter id: nil for the topic's current schema.
  func fetchSchema(id: String?) async throws {
    let topic = self.options.topic
    var schemaID = id ?? ""
    if id == nil {
      let found = try await self.ask(
        "GetTopic \(topic)", ifInvalid: .refused, "check the name of the topic"
      ) { [client] in
        try await client.topic(named: topic, credentials: $0).checked(topic)
      }
      guard found.canPublish else {
        throw RunFailure(
          .cannotPublish,
          "\(topic): the service does not allow this user to publish to the topic (can_publish is "
            + "false); grant the user Create on the event, and name the event itself, not a channel"
        )
      }
      schemaID = found.schemaID
    }
    guard !schemaID.isEmpty else {
      throw RunFailure(
        .cannotPublish,
        "\(topic): the service names no schema for the topic; publish to the event itself, "
          + "/event/NAME__e, not to a channel")
    }
    guard schemaID != self.encoder?.schemaID else { return }
    let schema = try await self.ask(
      "GetSchema \(schemaID)", ifInvalid: .unavailable,
      "the service itself has named this schema; the event may have been changed a moment ago, so try "
        + "again"
    ) { [client, schemaID] in
      try await client.schema(id: schemaID, credentials: $0).checked(schemaID)
    }
    var encoding = self.options.encoding
    if encoding.createdBy == nil { encoding.createdBy = await self.userID() }
    self.schema = schema.json
    do {
      self.encoder = try PublishEncoder(
        json: schema.json, schemaID: schemaID, topic: topic, options: encoding)
    } catch {
      throw RunFailure(.schema, "\(error)")
    }
  }

  /// Repeats a call until it is answered or nothing can be done.
  ///
  /// - Parameter code: how the run ends when the service calls the request invalid, which contains
  ///   nothing but a name or an ID that this program was given.
  private func ask<Value: Sendable>(
    _ operation: String, ifInvalid code: ExitCode, _ advice: String,
    _ call: @escaping @Sendable (Credentials) async throws -> Value
  ) async throws -> Value {
    while true {
      let (used, result) = try await self.untilInterrupted { [credentials] in
        var used: Credentials?
        do {
          let current = try await credentials.credentials()
          used = current
          return (used: used, result: Result<Value, PubSubError>.success(try await call(current)))
        } catch {
          return (used: used, result: .failure(PubSubError(error, operation: operation)))
        }
      }
      switch result {
      case .success(let value):
        if let used { await self.credentials.worked(used) }
        self.retries.succeeded()
        self.refusals = 0
        return value
      case .failure(let error):
        let invalid = RunFailure(.refused, code: code, "\(error.message); \(advice)")
        try await self.recover(from: error, used, ifInvalid: invalid)
      }
    }
  }

  // MARK: Failures

  /// Waits before another attempt. Throws `RunFailure` if there is none.
  func recover(
    from error: PubSubError, _ used: Credentials?, ifInvalid: RunFailure? = nil
  ) async throws {
    try self.checkInterruption()
    let topic = self.options.topic
    if let cause = error.cause as? TLSError, cause.needsIntervention {
      throw RunFailure(.tls, code: .configuration, error.message)
    }
    var minimum = Duration.zero
    switch error.disposition(sentReplayID: false) {
    case _ where error.isAllowanceUsedUp, .quota:
      throw RunFailure(
        .quota,
        "\(topic): an allowance of the org is used up; publish the rest later: \(error.message)")
    case .retry(let delay): minimum = delay
    case .reauthenticate:
      self.refusals += 1
      guard let used, await self.credentials.refused(used), self.refusals < Self.maxRefusals else {
        throw RunFailure(.login, code: .refused, error.message)
      }
    case .stop, .replay:
      if let cause = error.cause, error.code == .credentials { throw RunFailure(cause) }
      throw RunFailure(.refused, error.message)
    // Not the service's verdict on a request, but the transport's on an answer.
    case .bug where !error.isRefusal:
      throw RunFailure(.malformedResponse, error.message)
    case .bug: throw ifInvalid ?? RunFailure(.internal, error.message)
    }
    let delay = self.retries.failed(
      at: self.client.clock.now, minimum: minimum, random: .random(in: 0..<1))
    guard let delay else {
      throw RunFailure(
        .unavailable,
        error.message + self.retries.verdict(at: self.client.clock.now, setting: "--give-up-after"))
    }
    // A single broken connection is reopened silently.
    if self.retries.failures == 2 {
      self.onRetry("\(error.message); trying again, for up to --give-up-after")
    }
    await self.wait(until: self.client.clock.now + delay)
    try self.checkInterruption()
  }

  func checkInterruption() throws(RunFailure) {
    guard self.interruption.isAsked else { return }
    throw RunFailure(.signal, code: .tryAgain, "stopped by a signal before the end of the input")
  }

  /// Returns at the given instant, or as soon as the user asks the run to stop.
  func wait(until instant: ContinuousClock.Instant?) async {
    guard let instant, instant > self.client.clock.now else { return }
    // The only error is cancellation, after which the caller checks `interruption`.
    try? await self.untilInterrupted { try await self.client.clock.sleep(until: instant) }
  }

  /// Runs a task, which is cancelled when the user asks the run to stop.
  func untilInterrupted<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let task = Task(operation: body)
    self.interruption.respond { task.cancel() }
    defer { self.interruption.respond { [input] in input.interrupt() } }
    return try await task.value
  }
}
