internal import Clocks
import EventLoop
import GRPCCore
import JSON
import Pipeline
import PubSubAPI
import PubSubSource
import TLSStream

struct PublishOptions: Sendable {
  var topic: String
  var isStream = false
  var isDryRun = false
  var repeatsUnknown = false
  /// Events per second.
  var rate: Double?
  var encoding = PublishEncoder.Options()
  var retry = RetrySchedule()
}

/// Publishes the events of an input and tells what became of each, in the order of the input.
///
/// Publishing is not idempotent. What certainly was not published is sent again; what may have been is
/// not, unless asked for.
actor PublishRun<Transport: ClientTransport> {
  /// What happened when the next lines were asked for.
  enum Built { case batch, ended, interrupted, nothing }

  let options: PublishOptions
  let client: PubSubClient<Transport>
  private let credentials: any CredentialsSource
  private let input: InputBytes
  private let interruption: Interruption
  /// The user that has logged in, if the login tells.
  private let userID: @Sendable () async -> String?
  /// Writes lines of results; false when they cannot be written.
  private let output: @Sendable ([PublishLine]) -> Bool
  /// Shows how far the run is.
  private let onProgress: @Sendable (PublishSummary) -> Void

  private var encoder: PublishEncoder?
  private var lines = LineBuffer(maxLineBytes: PublishLimits.lineBytes)
  private var isInputEnded = false
  /// A line that did not fit into the last request.
  private var carried: PublishLine?
  /// What is not written yet, in the order of the input.
  private(set) var batches: [PublishBatch] = []
  private var pace: PublishPace
  private var retries: Retries
  private var refusals = 0
  /// What the service said when it refused events because an allowance is used up.
  private var allowanceRefusal: String?
  /// Refused events may be taken by another schema; its ID, empty if it is to be asked for.
  private var otherSchemaID: String?
  private var isOutputBroken = false
  /// Whether the present stream has answered.
  private var streamHasAnswered = false

  private(set) var summary = PublishSummary()
  /// Why the run ended before the input did.
  private(set) var failure: RunFailure?

  /// Requests of a stream that wait for their answers.
  private static var window: Int { 4 }
  /// Lines of a batch, those included that are wrong.
  private static var maxLinesOfBatch: Int { 1000 }
  /// Text of a batch that is kept in case the schema changes.
  private static var maxTextOfBatch: Int { 8 << 20 }
  /// A stream with nothing to send is left before the service ends it, which it does after 70 s.
  private static var idleTime: Duration { .seconds(45) }
  /// Schemas that an event is encoded with, one after the other.
  private static var maxEncodings: Int { 4 }
  private static var maxRefusals: Int { 5 }

  init(
    _ options: PublishOptions, client: PubSubClient<Transport>, credentials: any CredentialsSource,
    input: InputBytes, interruption: Interruption,
    userID: @escaping @Sendable () async -> String? = { nil },
    output: @escaping @Sendable ([PublishLine]) -> Bool,
    onProgress: @escaping @Sendable (PublishSummary) -> Void = { _ in }
  ) {
    self.options = options
    self.client = client
    self.credentials = credentials
    self.input = input
    self.interruption = interruption
    self.userID = userID
    self.output = output
    self.onProgress = onProgress
    self.pace = PublishPace(rate: options.rate)
    self.retries = Retries(options.retry)
  }

  var exitCode: ExitCode { self.failure?.exitCode ?? self.summary.exitCode }

  /// The last line that was looked at.
  var lastLine: Int { self.lines.number }

  /// Returns when every line has its result, or `failure` says why the rest has none.
  func run() async {
    do {
      try await self.fetchSchema(id: nil)
      if self.options.isDryRun {
        try await self.check()
      } else if self.options.isStream {
        try await self.publishByStreams()
      } else {
        try await self.publishByCalls()
      }
    } catch {
      self.fail(RunFailure(error))
    }
    self.settleRest()
    self.flush()
  }

  private func fail(_ failure: RunFailure) { self.failure = self.failure ?? failure }

  /// What is left has no outcome yet.
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

  private func publishByCalls() async throws {
    while let index = try await self.nextBatch() {
      await self.wait(until: self.batches[index].due)
      try self.checkInterruption()
      self.batches[index].isOutstanding = true
      var used: Credentials?
      do {
        let credentials = try await self.credentials.credentials()
        used = credentials
        let answer = try await self.client.publish(
          topic: self.options.topic, events: self.batches[index].events, credentials: credentials)
        await self.credentials.worked(credentials)
        self.take(answer)
      } catch {
        let error = PubSubError(error, operation: "Publish to \(self.options.topic)")
        self.lost(error, isCertain: error.publishedNothing)
        try await self.recover(from: error, used)
      }
      try await self.afterAnswers()
    }
  }

  private func publishByStreams() async throws {
    while let index = try await self.nextBatch() {
      await self.wait(until: self.batches[index].due)
      try self.checkInterruption()
      self.streamHasAnswered = false
      var used: Credentials?
      do {
        let credentials = try await self.credentials.credentials()
        used = credentials
        try await self.client.withPublishStream(
          topic: self.options.topic, credentials: credentials
        ) { stream in
          try await self.serve(stream)
        }
        await self.credentials.worked(credentials)
      } catch {
        let error = PubSubError(error, operation: "PublishStream to \(self.options.topic)")
        self.lost(error, isCertain: error.publishedNothing && !self.streamHasAnswered)
        try await self.recover(from: error, used)
      }
      try await self.afterAnswers()
    }
  }

  /// Sends and takes answers until there is nothing to send for a while, with nothing outstanding.
  private func serve(_ stream: PublishStream) async throws {
    while true {
      var outstanding = self.batches.count { $0.isOutstanding }
      var isEnded = false
      while outstanding < Self.window, self.maySend,
        let index = try await self.nextToSend(mayWait: outstanding == 0)
      {
        let delay = (self.batches[index].due ?? ProcessClock.now) - ProcessClock.now
        if delay > .zero {
          if outstanding > 0 { break }
          if delay > Self.idleTime { return }
          await self.wait(until: self.batches[index].due)
          guard self.maySend else { break }
        }
        self.batches[index].isOutstanding = true
        guard try await stream.send(self.batches[index].events) else {
          // The service has ended the call in the meantime, and this was not sent.
          self.batches[index].isOutstanding = false
          isEnded = true
          break
        }
        outstanding += 1
      }
      if outstanding == 0, !isEnded { return }
      let answer = try await stream.answer()
      self.streamHasAnswered = true
      self.take(answer)
      self.flush()
    }
  }

  /// Nothing has come up that ends the run or needs another call first.
  private var maySend: Bool {
    !self.interruption.isAsked && !self.isOutputBroken && self.allowanceRefusal == nil
      && self.otherSchemaID == nil
  }

  // MARK: Answers

  /// The oldest batch that is outstanding is answered.
  private func take(_ answer: PublishAnswer) {
    guard let index = self.batches.firstIndex(where: \.isOutstanding) else {
      preconditionFailure("an answer without a request")
    }
    self.retries.succeeded()
    self.refusals = 0
    self.batches[index].isOutstanding = false
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
    guard !line.mayBePublished else {
      let reason = "an earlier request had no answer; the repetition was refused: \(message)"
      return self.batches[index].settle(place, .unknown(reason))
    }
    if message.contains(PubSubError.allowanceMark) {
      self.allowanceRefusal = message
      self.batches[index].lines[place].refusal = message
    } else if line.encodings < Self.maxEncodings,
      currentSchema.isEmpty || currentSchema != line.event?.schemaID
    {
      self.batches[index].lines[place].refusal = message
      if currentSchema.isEmpty { self.otherSchemaID = self.otherSchemaID ?? "" }
    } else {
      self.batches[index].settle(place, .refused(message))
    }
  }

  /// What outstanding requests will not be answered any more.
  ///
  /// - Parameter isCertain: nothing of them was published.
  private func lost(_ error: PubSubError, isCertain: Bool) {
    for index in self.batches.indices where self.batches[index].isOutstanding {
      self.batches[index].isOutstanding = false
      guard !isCertain else { continue }
      if self.options.repeatsUnknown {
        for place in self.batches[index].open {
          self.batches[index].lines[place].mayBePublished = true
        }
      } else {
        self.batches[index].settle { _ in .unknown("no answer: \(error.message)") }
      }
    }
  }

  /// Does what answers have asked for, with nothing outstanding.
  private func afterAnswers() async throws {
    if let message = self.allowanceRefusal {
      throw RunFailure(
        .tryAgain, reason: "quota",
        "\(self.options.topic): the org may publish no more events for now; publish the events that "
          + "were not sent later: \(message)")
    }
    if let id = self.otherSchemaID {
      self.otherSchemaID = nil
      try await self.fetchSchema(id: id.isEmpty ? nil : id)
      self.encodeAgain()
    }
    self.flush()
  }

  /// After the schema may have changed: events that wait get the new one, and those that were refused
  /// although it is the same are refused for good.
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
          line.outcome = .refused(refusal)
        }
        self.batches[index].lines[place] = line
      }
    }
    if var line = self.carried, line.outcome == nil {
      encoder.encode(&line)
      self.carried = line
    }
  }

  // MARK: Schema

  /// Throws `RunFailure`.
  ///
  /// - Parameter id: nil to ask for the topic's current one.
  private func fetchSchema(id: String?) async throws {
    let topic = self.options.topic
    var schemaID = id ?? ""
    if id == nil {
      let found = try await self.ask("GetTopic \(topic)") { [client] in
        try await client.topic(named: topic, credentials: $0)
      }
      guard found.canPublish else {
        throw RunFailure(
          .refused, reason: "cannot_publish",
          "\(topic): the service does not allow this user to publish to the topic (can_publish is "
            + "false); grant the user Create on the event, and name the event itself, not a channel"
        )
      }
      schemaID = found.schemaID
    }
    guard !schemaID.isEmpty else {
      throw RunFailure(
        .refused, reason: "cannot_publish",
        "\(topic): the service names no schema for the topic; publish to the event itself, "
          + "/event/NAME__e, not to a channel")
    }
    guard schemaID != self.encoder?.schemaID else { return }
    let schema = try await self.ask("GetSchema \(schemaID)") { [client, schemaID] in
      try await client.schema(id: schemaID, credentials: $0)
    }
    var encoding = self.options.encoding
    if encoding.createdBy == nil { encoding.createdBy = await self.userID() }
    self.encoder = try PublishEncoder(
      json: schema.json, schemaID: schemaID, topic: topic, options: encoding)
  }

  /// Makes a call that can be repeated until it is answered, or nothing can be done.
  private func ask<Value: Sendable>(
    _ operation: String, _ call: @escaping @Sendable (Credentials) async throws -> Value
  ) async throws -> Value {
    while true {
      let asking = Task { [credentials] in
        var used: Credentials?
        do {
          let current = try await credentials.credentials()
          used = current
          return (used: used, result: Result<Value, PubSubError>.success(try await call(current)))
        } catch {
          return (used: used, result: .failure(PubSubError(error, operation: operation)))
        }
      }
      self.interruption.respond { asking.cancel() }
      let (used, result) = await asking.value
      self.interruption.respond { [input] in input.interrupt() }
      switch result {
      case .success(let value):
        if let used { await self.credentials.worked(used) }
        self.retries.succeeded()
        self.refusals = 0
        return value
      case .failure(let error): try await self.recover(from: error, used)
      }
    }
  }

  // MARK: Failures

  /// Waits before another attempt. Throws `RunFailure` when there is to be none.
  private func recover(from error: PubSubError, _ used: Credentials?) async throws {
    try self.checkInterruption()
    let topic = self.options.topic
    if let cause = error.cause as? TLSError, cause.needsIntervention {
      throw RunFailure(.configuration, reason: "tls", error.message)
    }
    var minimum = Duration.zero
    switch error.disposition(sentReplayID: false) {
    case _ where error.isAllowanceUsedUp, .quota:
      throw RunFailure(
        .tryAgain, reason: "quota",
        "\(topic): an allowance of the org is used up; publish the rest later: \(error.message)")
    case .retry(let delay): minimum = delay
    case .reauthenticate:
      self.refusals += 1
      guard let used, await self.credentials.refused(used), self.refusals < Self.maxRefusals else {
        throw RunFailure(.refused, reason: "login", error.message)
      }
    case .stop, .replay:
      if let cause = error.cause, error.code == .credentials { throw RunFailure(cause) }
      throw RunFailure(.refused, reason: "refused", error.message)
    case .bug: throw RunFailure(.internal, reason: "internal", error.message)
    }
    let delay = self.retries.failed(
      at: ProcessClock.now, minimum: minimum, random: .random(in: 0..<1))
    guard let delay else {
      let attempts = self.retries.failures
      throw RunFailure(
        .unavailable, reason: "unavailable",
        error.message + (attempts > 1 ? "; gave up after \(attempts) failed attempts" : ""))
    }
    await self.wait(until: ProcessClock.now + delay)
    try self.checkInterruption()
  }

  private func checkInterruption() throws(RunFailure) {
    guard self.interruption.isAsked else { return }
    throw RunFailure(.tryAgain, reason: "signal", "stopped by a signal before the end of the input")
  }

  /// Returns at that instant, or as soon as the user asks the run to stop.
  private func wait(until instant: ContinuousClock.Instant?) async {
    guard let instant, instant > ProcessClock.now else { return }
    let waiting = Task {
      // The only error is cancellation, upon which the caller looks at `interruption`.
      try? await ProcessClock.sleep(until: instant)
    }
    self.interruption.respond { waiting.cancel() }
    await waiting.value
    self.interruption.respond { [input] in input.interrupt() }
  }

  // MARK: Lines

  /// The place of a batch that is to be sent, without a limit of time; nil at the end of the input.
  private func nextBatch() async throws -> Int? {
    while true {
      self.flush()
      if self.isOutputBroken {
        throw RunFailure(
          .output, reason: "output",
          "results cannot be written to standard output: the reader has gone, or the disk is full")
      }
      if let index = self.batches.firstIndex(where: { !$0.isSettled }) { return index }
      try self.checkInterruption()
      switch try await self.build(until: nil) {
      case .batch, .nothing: continue
      case .ended: return nil
      case .interrupted: try self.checkInterruption()
      }
    }
  }

  /// The same, while a stream is open.
  private func nextToSend(mayWait: Bool) async throws -> Int? {
    while true {
      self.flush()
      let next = self.batches.firstIndex { !$0.isSettled && !$0.isOutstanding }
      if let next { return next }
      guard self.maySend, self.batches.count < 2 * Self.window else { return nil }
      let now = ProcessClock.now
      switch try await self.build(until: mayWait ? now + Self.idleTime : now) {
      case .batch: continue
      case .ended, .interrupted, .nothing: return nil
      }
    }
  }

  /// Makes a batch of the lines that have arrived, at least of one.
  private func build(until deadline: ContinuousClock.Instant?) async throws -> Built {
    var batch = PublishBatch()
    var (events, bytes, text) = (0, 0, 0)
    let maxEvents = self.pace.maxEventsOfRequest
    while events < maxEvents, batch.lines.count < Self.maxLinesOfBatch,
      text < Self.maxTextOfBatch
    {
      guard let line = self.carried.take() ?? self.nextLine() else {
        if self.isInputEnded {
          if batch.lines.isEmpty { return .ended }
          break
        }
        switch await self.input.next(until: batch.lines.isEmpty ? deadline : ProcessClock.now) {
        case .bytes(let more): self.lines.append(more)
        case .end: self.isInputEnded = true
        case .failed(let error):
          throw RunFailure(.usage, reason: "input", "the input cannot be read: \(error)")
        case .interrupted:
          if batch.lines.isEmpty { return .interrupted }
          self.batches.append(batch)
          return .interrupted
        case .nothing:
          if batch.lines.isEmpty { return .nothing }
          return self.finish(batch, events: events)
        }
        continue
      }
      let size = line.event?.requestByteCount ?? 0
      guard bytes + size <= PublishLimits.requestBytes else {
        self.carried = line
        break
      }
      if line.event != nil { events += 1 }
      bytes += size
      text += line.text.count
      batch.lines.append(line)
    }
    return self.finish(batch, events: events)
  }

  private func finish(_ batch: PublishBatch, events: Int) -> Built {
    var batch = batch
    if events > 0 { batch.due = self.pace.due(events: events, now: ProcessClock.now) }
    self.batches.append(batch)
    return .batch
  }

  /// The next line of what has arrived.
  private func nextLine() -> PublishLine? {
    guard let encoder = self.encoder, let found = self.lines.next(isEnd: self.isInputEnded) else {
      return nil
    }
    var line = PublishLine(number: found.number)
    if let text = found.text {
      line.text = text
      encoder.encode(&line)
      if line.outcome != nil { line.text = [] }
    } else {
      line.outcome = .refused("the line has more than \(PublishLimits.lineBytes) bytes")
    }
    return line
  }

  /// Writes the results that are next in the order of the input.
  private func flush() {
    let count = self.batches.prefix { $0.isSettled }.count
    guard count > 0 else { return }
    let results = self.batches[..<count].flatMap(\.lines)
    for line in results { self.summary.count(line.outcome) }
    self.batches.removeFirst(count)
    if !self.isOutputBroken {
      if self.output(results) {
        self.summary.lastWritten = results.last?.number ?? self.summary.lastWritten
      } else {
        self.isOutputBroken = true
      }
    }
    self.onProgress(self.summary)
  }
}
