internal import Clocks
import GRPCCore
import Pipeline
import PubSubAPI

/// The options of the command line.
struct PublishOptions: Sendable {
  var topic: String
  var isStream = false
  var isDryRun = false
  var repeatsUnknown = false
  /// Shows the schema and publishes nothing.
  var showsSchema = false
  /// Events per second.
  var rate: Double?
  var encoding = PublishEncoder.Options()
  var retry = RetrySchedule()
}

/// Publishes the events of an input and reports the outcome of each, in the order of the input.
///
/// Publishing is not idempotent. Events that were certainly not published are sent again; those
/// that may have been are not, unless requested.
actor PublishRun<Transport: ClientTransport> {
  /// The result of requesting the next lines.
  enum Built { case batch, ended, interrupted, nothing }

  let options: PublishOptions
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  let input: InputBytes
  let interruption: Interruption
  /// The logged-in user, if the login reports it.
  let userID: @Sendable () async -> String?
  /// Writes lines of results; false when they cannot be written.
  let output: @Sendable ([PublishLine]) -> Bool
  /// Called with a sentence when attempts begin to fail repeatedly.
  let onRetry: @Sendable (String) -> Void
  /// Receives the progress of the run.
  let onProgress: @Sendable (PublishSummary) -> Void

  /// JSON text of the schema that events are encoded with.
  var schema: String?
  var encoder: PublishEncoder?
  var lines = LineBuffer(maxLineBytes: PublishLimits.lineBytes)
  var isInputEnded = false
  /// Why nothing more can be read. What has been read is published first.
  var inputFailure: RunFailure?
  /// A line that did not fit into the last request.
  var carried: PublishLine?
  /// The batches that are not written yet, in the order of the input.
  var batches: [PublishBatch] = []
  var pace: PublishPace
  var retries: Retries
  var refusals = 0
  /// The service's message when it refused events because an allowance is used up.
  private var allowanceRefusal: String?
  /// The ID of another schema with which refused events may be accepted; empty if the ID has to be
  /// requested.
  private var otherSchemaID: String?
  var isOutputBroken = false

  var summary = PublishSummary()
  /// Why the run ended before the input did.
  private(set) var failure: RunFailure?

  /// The maximum number of unanswered requests of a stream.
  static var window: Int { 4 }
  /// The time after which an idle stream is closed. The service would end it after 70 s.
  static var idleTime: Duration { .seconds(45) }
  /// The maximum number of schemas with which an event is encoded, one after the other.
  private static var maxEncodings: Int { 4 }

  init(
    _ options: PublishOptions, client: PubSubClient<Transport>, credentials: any CredentialsSource,
    input: InputBytes, interruption: Interruption,
    userID: @escaping @Sendable () async -> String? = { nil },
    output: @escaping @Sendable ([PublishLine]) -> Bool,
    onRetry: @escaping @Sendable (String) -> Void = { _ in },
    onProgress: @escaping @Sendable (PublishSummary) -> Void = { _ in }
  ) {
    self.options = options
    self.client = client
    self.credentials = credentials
    self.input = input
    self.interruption = interruption
    self.userID = userID
    self.output = output
    self.onRetry = onRetry
    self.onProgress = onProgress
    self.pace = PublishPace(rate: options.rate)
    self.retries = Retries(options.retry)
  }

  var exitCode: ExitCode { self.failure?.exitCode ?? self.summary.exitCode }

  /// The last line that was read.
  var lastLine: Int { self.lines.number }

  /// Returns when every line has its result, or `failure` says why the rest has none.
  func run() async {
    do {
      try await self.fetchSchema(id: nil)
      if self.options.showsSchema { return }
      if self.options.isDryRun {
        try await self.check()
      } else {
        try await self.publish()
      }
    } catch {
      self.fail(RunFailure(error))
    }
    self.settleRest()
    self.flush()
  }

  private func fail(_ failure: RunFailure) { self.failure = self.failure ?? failure }

  /// Sets the outcome of all remaining lines.
  private func settleRest() {
    if let carried = self.carried.take() {
      self.batches.append(PublishBatch(lines: [carried]))
    }
    let reason = self.failure?.message ?? "the run ended"
    for index in self.batches.indices {
      self.batches[index].settle {
        $0.mayBePublished ? .unknown(reason) : .notSent($0.refusal ?? reason)
      }
    }
  }

  // MARK: Ways to publish

  private func check() async throws {
    while try await self.nextBatch() != nil {
      for index in self.batches.indices {
        self.batches[index].settle { .valid(byteCount: $0.event?.payload.count ?? 0) }
      }
    }
  }

  private func publish() async throws {
    let topic = self.options.topic
    while let index = try await self.nextBatch() {
      if try await self.renewSchema() { continue }
      await self.wait(until: self.batches[index].due)
      try self.checkInterruption()
      var used: Credentials?
      do {
        let credentials = try await self.logIn()
        used = credentials
        if self.options.isStream {
          try await self.client.withPublishStream(topic: topic, credentials: credentials) {
            try await self.serve($0)
          }
        } else {
          self.batches[index].isOutstanding = true
          self.take(
            try await self.client.publish(
              topic: topic, events: self.batches[index].events, credentials: credentials))
        }
        await self.credentials.worked(credentials)
      } catch {
        let call = self.options.isStream ? "PublishStream" : "Publish"
        let error = PubSubError(error, operation: "\(call) to \(topic)")
        self.lost(error, isCertain: error.publishedNothing)
        try await self.recover(from: error, used)
      }
      try self.checkAllowance()
      self.flush()
    }
  }

  /// Sends requests and takes answers until there has been nothing to send for a while and nothing
  /// is outstanding.
  private func serve(_ stream: PublishStream) async throws {
    while true {
      var outstanding = self.batches.count { $0.isOutstanding }
      var isEnded = false
      while outstanding < Self.window, self.maySend,
        let index = try await self.nextToSend(mayWait: outstanding == 0)
      {
        let delay = (self.batches[index].due ?? self.client.clock.now) - self.client.clock.now
        if delay > .zero {
          if outstanding > 0 { break }
          if delay > Self.idleTime { return }
          await self.wait(until: self.batches[index].due)
          guard self.maySend else { break }
        }
        self.batches[index].isOutstanding = true
        guard await stream.send(self.batches[index].events) else {
          // The call has ended in the meantime, so this was not sent.
          self.batches[index].isOutstanding = false
          isEnded = true
          break
        }
        outstanding += 1
      }
      if outstanding == 0, !isEnded { return }
      let answer = try await stream.answer()
      self.take(answer)
      self.flush()
    }
  }

  /// Whether nothing ends the run or requires another call first.
  var maySend: Bool {
    !self.interruption.isAsked && !self.isOutputBroken && self.allowanceRefusal == nil
      && self.otherSchemaID == nil
  }

  // MARK: Answers

  /// Applies an answer to the oldest outstanding batch.
  private func take(_ answer: PublishAnswer) {
    guard let index = self.batches.firstIndex(where: \.isOutstanding) else {
      preconditionFailure("an answer without a request")
    }
    self.retries.succeeded()
    self.refusals = 0
    self.batches[index].answered()
    for (place, result) in zip(self.batches[index].open, answer.results) {
      switch result {
      case .published(let replayID):
        self.batches[index].settle(place, .published(replayID: replayID))
      case .refused(let message):
        self.refused(message, place, of: index, currentSchema: answer.schemaID)
      }
    }
    if !answer.schemaID.isEmpty, answer.schemaID != self.encoder?.schemaID {
      self.otherSchemaID = answer.schemaID
    }
  }

  private func refused(_ message: String, _ place: Int, of index: Int, currentSchema: String) {
    let line = self.batches[index].lines[place]
    if PubSubError.beginsWithAllowanceMark(message) {
      self.allowanceRefusal = message
      self.batches[index].lines[place].refusal = message
    } else if line.encodings < Self.maxEncodings,
      currentSchema.isEmpty || currentSchema != line.event?.schemaID
    {
      self.batches[index].lines[place].refusal = message
      if currentSchema.isEmpty { self.otherSchemaID = self.otherSchemaID ?? "" }
    } else {
      self.batches[index].settle(place, line.refused(message))
    }
  }

  /// Settles outstanding requests that will no longer be answered.
  ///
  /// - Parameter isCertain: whether certainly none of their events was published.
  private func lost(_ error: PubSubError, isCertain: Bool) {
    let reason = "no answer: \(error.message)"
    for index in self.batches.indices where self.batches[index].isOutstanding {
      guard !isCertain else {
        self.batches[index].isOutstanding = false
        continue
      }
      self.batches[index].answered()
      if self.options.repeatsUnknown {
        for place in self.batches[index].open {
          self.batches[index].lines[place].mayBePublished = true
        }
      } else {
        self.batches[index].settle { _ in .unknown(reason) }
      }
    }
  }

  private func checkAllowance() throws(RunFailure) {
    guard let message = self.allowanceRefusal else { return }
    throw RunFailure(
      .quota,
      "\(self.options.topic): the org may publish no more events for now; publish the events that "
        + "were not sent later: \(message)")
  }

  /// Gets the schema that an answer has named, once there is something to encode with it.
  ///
  /// - Returns: whether there was one, in which case waiting events may have new outcomes.
  private func renewSchema() async throws -> Bool {
    guard let id = self.otherSchemaID.take() else { return false }
    try await self.fetchSchema(id: id.isEmpty ? nil : id)
    self.encodeAgain()
    return true
  }

  /// Logs in, unless a signal comes first.
  private func logIn() async throws -> Credentials {
    try await self.untilInterrupted { [credentials] in try await credentials.credentials() }
  }

  /// Encodes waiting events again if the schema has changed. If it has not, those that were refused
  /// are refused for good.
  private func encodeAgain() {
    guard let encoder = self.encoder else { return }
    for index in self.batches.indices {
      for place in self.batches[index].open {
        var line = self.batches[index].lines[place]
        let refusal = line.refusal
        line.refusal = nil
        if line.event?.schemaID != encoder.schemaID {
          encoder.encode(&line)
        } else if let refusal {
          line.outcome = line.refused(refusal)
        }
        self.batches[index].lines[place] = line
      }
    }
    if var line = self.carried, line.outcome == nil {
      encoder.encode(&line)
      self.carried = line
    }
  }
}
