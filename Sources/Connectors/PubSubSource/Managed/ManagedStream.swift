internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// The state of a topic's managed subscription.
private struct ManagedState: Sendable {
  var commits = ManagedCommits()
  var detour: Detour?
  var detourCount = 0
  /// The wait for the subscription since the first of consecutive refusals; nil unless it was
  /// refused.
  var wait: SubscriptionWait?
  /// The runner has ended, so what is durable now is final.
  var isFinishing = false
  /// The stream has ended for good.
  var isDone = false

  // MARK: Of the current call

  var requests = ManagedRequestQueue()
  /// Where the runner wants the stream to begin.
  var start = StartPoint.managed
  var join = ManagedJoin(at: .managed)
  var openedAt: ContinuousClock.Instant
  /// Held responses are being judged, so later ones wait.
  var isHandingOnHeld = false
  /// The service has answered the call, so the subscription is ours.
  var isAnswered = false
  var isOpen = false
  /// The liveness of the plain subscription that looks for the first event after our position.
  var probe: Liveness?
  /// Nothing more is passed on.
  var isCut = false

  /// Events are read with `Subscribe` until the managed stream can take over.
  struct Detour: Sendable {
    enum Phase { case begins, reads, over }

    /// Where the managed stream began; nil if it delivered no event.
    var until: ManagedJoin.Event?
    /// Why the managed stream was left.
    var cause: ManagedJoin.Cause
    var phase = Phase.begins
  }

  /// Forgets the last call.
  mutating func opens(at start: StartPoint, now: ContinuousClock.Instant) {
    self.commits.opened()
    self.detour = nil
    self.requests = ManagedRequestQueue()
    self.start = start
    self.join = ManagedJoin(at: start)
    self.openedAt = now
    (self.isHandingOnHeld, self.isAnswered, self.isCut) = (false, false, false)
    (self.isOpen, self.probe) = (true, nil)
  }
}

/// Makes the calls of a topic whose position the service also keeps, with `ManagedSubscribe`: our own
/// position decides. What proves to follow it is passed on by the topic's stream, and where the
/// managed stream does not, `Subscribe` takes over.
final class ManagedStream<Transport: ClientTransport>: Subscriber {
  private let record: ManagedSubscription.Record
  private let stream: TopicStream<Transport>
  private let state: Lock<ManagedState>

  /// The maximum wait for the last commit, and then for the end of the call.
  private static var closingTime: Duration { .seconds(5) }
  /// The plain subscription is opened after this time, even if the service has not answered yet.
  private static var answerTime: Duration { .seconds(2) }
  /// The same after an attempt that was refused because another client had the subscription: the
  /// next answer is likely to be another refusal.
  private static var likelyRefusalTime: Duration { .seconds(30) }

  init(_ record: ManagedSubscription.Record, of stream: TopicStream<Transport>) {
    self.record = record
    self.stream = stream
    self.state = Lock(ManagedState(openedAt: stream.loop.clock.now()))
  }

  private var loop: SubscriptionLoop<Transport> { self.stream.loop }

  func becameDurable(_ replayID: ReplayID) {
    self.state.withLock { $0.commits.becameDurable(replayID) }
  }

  /// Lets the stream commit what is durable and close its call.
  func finish() { self.state.withLock { $0.isFinishing = true } }

  private var isFinishing: Bool { self.state.withLock { $0.isFinishing } }

  var isDone: Bool { self.state.withLock { $0.isDone } }

  var progress: ManagedProgress {
    self.state.withLock { state in
      ManagedProgress(
        subscription: "\(self.record)", durable: state.commits.durable,
        stored: state.commits.stored, confirmedCount: state.commits.confirmedCount,
        failedCount: state.commits.failedCount, detourCount: state.detourCount)
    }
  }

  /// Runs until the stream has ended for good.
  func run() async {
    self.state.withLock { ($0.isDone, $0.wait) = (false, nil) }
    await self.stream.run(self)
    self.state.withLock { $0.isDone = true }
  }

  private func post(_ signal: TopicStream<Transport>.Signal) { self.stream.signals.post(signal) }

  private func pause(_ duration: Duration) async {
    let clock = self.loop.clock
    await clock.sleep(clock.nextLook(clock.now(), duration))
  }

  // MARK: Subscriber

  func start() async -> SubscriptionCall? {
    guard let start = await self.stream.startPoint() else { return nil }
    if start != .managed, self.state.withLock({ $0.detour != nil }) {
      return self.loop.subscribe(at: start.position, for: self)
    }
    // If we have a position, a plain subscription after it has to prove that the managed stream
    // continues there. Until then, one event at a time is requested.
    let needsProof = start != .managed
    let isAfter = if case .after = start { true } else { false }
    let requests = self.state.withLock { state in
      state.opens(at: start, now: self.loop.clock.now())
      return state.requests
    }
    return SubscriptionCall(
      sentReplayID: isAfter, window: needsProof ? 1 : nil, addCredit: { requests.add($0) },
      // `close` closes the request side, after the last commit.
      finish: {},
      make: { await self.make($0, $1, proving: needsProof) })
  }

  /// Takes a response of the plain stream. It has caught up where the managed stream began, or at the
  /// end of the topic.
  func received(_ view: FetchResponseView) async -> Bool {
    guard await self.stream.received(view) else { return false }
    return self.state.withLock { state in
      guard let detour = state.detour, view.isKeepalive || detour.until.map(view.contains) == true
      else { return true }
      state.detour?.phase = .over
      return false
    }
  }

  /// Sends commits when they are due.
  func tick(at now: ContinuousClock.Instant) -> SubscriptionEnding? {
    if self.stream.isMissingSchema { return .closed }
    if let ending = self.stream.tick(at: now) { return ending }
    return self.state.withLock { state in
      // A call of `Subscribe` commits nothing.
      guard state.isOpen else { return nil }
      if state.join.check(at: now) {
        state.detour = .init(until: state.join.first, cause: state.join.cause)
        state.detourCount += 1
        return .closed
      }
      if state.isCut { return .closed }
      if case .idle? = state.probe?.check(at: now) { return .failed(self.loop.silence) }
      // Before the proof, commit only to keep the call open: if the service is ahead, a commit
      // would move it back, and it would send again what `Subscribe` reads.
      let mayCommit = state.join.counts || now - state.openedAt >= ManagedCommits.renewal
      if mayCommit, let commit = state.commits.due(at: now) { state.requests.add(commit) }
      return nil
    }
  }

  func note(_ notice: SubscriptionNotice) { self.stream.note(notice) }

  func ended(_ ending: SubscriptionEnding) async -> SubscriptionStep {
    if self.loop.isStopping {
      await self.commitAfterDetour()
      return .end
    }
    if self.stream.isMissingSchema { return .end }
    let detour = self.state.withLock { state in
      defer {
        switch state.detour?.phase {
        case .begins: state.detour?.phase = .reads
        case .over: state.detour = nil
        case .reads, nil: break
        }
      }
      return state.detour
    }
    switch detour?.phase {
    case .begins:
      let error = self.error(of: detour)
      self.stream.options.onManaged(.detour(reason: error.message))
      // Without delay, unless no new event has arrived since the previous detour.
      return .retry(error)
    case .over: return .reopen
    case .reads, nil: break
    }
    if case .failed(let error) = ending, error.serviceCode == .managedAlreadyActive {
      return self.waitForSubscription(after: error)
    }
    return await self.stream.ended(ending)
  }

  /// Waits while another client has the managed subscription.
  private func waitForSubscription(after error: PubSubError) -> SubscriptionStep {
    let options = self.stream.options
    let now = self.loop.clock.now()
    let minimum: Duration =
      if case .retry(let delay) = error.disposition(sentReplayID: false) { delay } else { .zero }
    let (delay, verdict) = self.state.withLock { state -> (Duration?, String) in
      var wait =
        state.wait ?? SubscriptionWait(options.retry, patience: options.subscriptionPatience)
      let delay = wait.refused(at: now, minimum: minimum, random: .random(in: 0..<1))
      state.wait = wait
      return (delay, wait.verdict(at: now))
    }
    // The service has answered, so the wait does not count as an outage.
    if let delay { return .wait(error, delay) }
    var failure = error.failure(.unavailable, options: options)
    failure.description += verdict
    self.stream.end(failure)
    return .end
  }

  /// Why `Subscribe` takes over.
  private func error(of detour: ManagedState.Detour?) -> PubSubError {
    let place =
      if case .after(let replayID) = self.state.withLock({ $0.start }) {
        "after replay ID \(replayID)"
      } else {
        "at the earliest event"
      }
    return PubSubError(
      .endOfStream, status: .ok, serviceCode: ServiceErrorCode(rawValue: "managed_position"),
      "managed subscription \(self.record) of \(self.loop.topic): the stored position is "
        + "\(place), but the service's stream " + self.description(of: detour)
        + "; what lies between is read with Subscribe, so nothing is missing")
  }

  private func description(of detour: ManagedState.Detour?) -> String {
    switch detour?.cause {
    case .flood: return "brings more events than were requested"
    case .contradiction: return "brings an event that Subscribe does not"
    case .elsewhere, nil: break
    }
    if let first = detour?.until {
      return "begins with replay ID \(first.replayID), as when another client has committed, or "
        + "the state directory was restored"
    }
    return "brings nothing, as when nothing was committed yet and defaultReplay is LATEST, another "
      + "client has committed, or the record is for another topic"
  }

  // MARK: The call

  private func make(
    _ credit: Int, _ credentials: Credentials, proving needsProof: Bool
  ) async -> SubscriptionEnding {
    let ending = await self.call(credit, credentials, proving: needsProof) {
      await withTaskGroup(of: SubscriptionEnding?.self) { group in
        if needsProof { group.addTask { await self.probe(credentials) } }
        group.addTask { await self.loop.watch(self) }
        defer { group.cancelAll() }
        for await ending in group {
          if let ending { return ending }
        }
        return .closed
      }
    }
    let held = self.state.withLock { $0.join.takeHeld() }.reduce(0) { $0 + $1.events.count }
    if held > 0 { self.post(.passedOver(topic: self.stream.index, eventCount: held)) }
    return ending
  }

  /// Makes the call until `supervise` says why it has to be closed, and closes it cleanly.
  ///
  /// - Parameter needsProof: our position has to be proven; otherwise the service's counts.
  private func call(
    _ credit: Int, _ credentials: Credentials, proving needsProof: Bool,
    supervise: @escaping @Sendable () async -> SubscriptionEnding
  ) async -> SubscriptionEnding {
    await withTaskGroup(of: SubscriptionEnding.self) { group in
      defer { group.cancelAll() }
      group.addTask(executorPreference: self.loop.client.executor) {
        await self.call(credit, credentials, proving: needsProof)
      }
      group.addTask(operation: supervise)
      let ending = await group.next() ?? .closed
      guard self.state.withLock({ $0.isOpen }) else { return ending }
      if case .closed = ending, self.loop.isStopping, !self.state.withLock({ $0.join.isApart }) {
        await self.waitForLastPosition()
      }
      await self.close()
      group.addTask {
        await self.loop.clock.sleep(self.loop.clock.now() + Self.closingTime)
        return .closed
      }
      _ = await group.next()
      return ending
    }
  }

  private func call(
    _ credit: Int, _ credentials: Credentials, proving needsProof: Bool
  ) async -> SubscriptionEnding {
    defer { self.state.withLock { $0.isOpen = false } }
    let operation = "ManagedSubscribe to \(self.record)"
    do {
      try await self.loop.client.managedSubscribe(
        ManagedSubscription(record: self.record, topic: self.loop.topic, credit: credit),
        credentials: credentials, requests: self.state.withLock { $0.requests },
        onOpen: { if !needsProof { self.note(.opened) } },
        onResponse: {
          await self.take($0)
          return true
        })
    } catch {
      return .failed(PubSubError(error, operation: operation))
    }
    return .failed(
      PubSubError(.endOfStream, status: .ok, "\(operation): the service ended the stream"))
  }

  // MARK: Responses

  private func take(_ view: FetchResponseView) async {
    self.note(.delivered(view.events.count))
    self.state.withLock { ($0.isAnswered, $0.wait) = (true, nil) }
    if let answer = view.commitAnswer {
      self.note(answer, of: view)
      // A response with only an answer says nothing about the stream's place and credit.
      if view.events.isEmpty { return self.loop.heard() }
    }
    while !Task.isCancelled {
      guard await self.judge(view, isHeld: false) else {
        await self.pause(.milliseconds(10))
        continue
      }
      return self.widen()
    }
  }

  /// Passes on what is proven to follow our position.
  ///
  /// - Parameter isHeld: the response has waited for proof.
  /// - Returns: false if a response that has waited longer comes first.
  private func judge(_ view: FetchResponseView, isHeld: Bool) async -> Bool {
    let now = self.loop.clock.now()
    let (isNext, answer) = self.state.withLock { state -> (Bool, ManagedJoin.OnResponse?) in
      if state.isHandingOnHeld, !isHeld { return (false, nil) }
      if state.isCut { return (true, nil) }
      if !view.events.isEmpty { return (true, state.join.received(view, at: now)) }
      return (true, state.join.counts ? .handOn(droppingFirst: 0) : .hold)
    }
    switch answer {
    case .handOn(let count):
      self.passOver(count)
      let goesOn = await self.loop.receive(view, delivered: view.events.count) {
        await self.stream.received(view.dropFirstEvents(count))
      }
      if !goesOn { self.state.withLock { $0.isCut = true } }
    case .drop:
      self.loop.heard(view, givesCredit: true)
      self.passOver(view.events.count)
    case .apart:
      self.post(.passedOver(topic: self.stream.index, eventCount: view.events.count))
      self.postHolding()
    case .hold:
      self.loop.heard(view)
      self.postHolding()
    case nil: break
    }
    return isNext
  }

  /// Keeps the runner from taking silence for the end of the topic while an event waits that may
  /// have to be exported. Call this after everything that makes silence count: an opening, a
  /// keepalive.
  private func postHolding() {
    // Posted under the lock, so that it cannot come after the awaited response.
    self.state.withLock { state in
      if state.join.awaitsEvent { self.post(.holding(topic: self.stream.index)) }
    }
  }

  /// Reports events that count against the org's allowance and are not passed on.
  private func passOver(_ count: Int) {
    guard count > 0 else { return }
    self.post(.passedOver(topic: self.stream.index, eventCount: count))
    if self.stream.options.maxDelivered == nil { self.loop.allow(count) }
  }

  /// Requests more events once the stream is known to be useful; until then, one at a time.
  private func widen() {
    if self.state.withLock({ $0.join.isUseful && !$0.isCut }) { self.loop.widen() }
  }

  private func note(_ answer: FetchResponseView.CommitAnswer, of view: FetchResponseView) {
    let id = view.string(answer.requestID)
    let stored = answer.replayID.isEmpty ? nil : ReplayID(Array(view[answer.replayID]))
    let result = self.state.withLock {
      $0.commits.answered(id: id, hasFailed: answer.failure != nil, stored: stored)
    }
    switch result {
    case .confirmed(let replayID): self.stream.options.onManaged(.confirmed(replayID))
    case .failed(let replayID):
      let text = answer.failure.map { view.string($0.message) } ?? ""
      self.stream.options.onManaged(.commitFailed(replayID, reason: text))
    case .misplaced(let stored, let asked):
      self.stream.options.onManaged(.misplaced(stored, asked: asked))
    case .unknown: break
    }
  }

  // MARK: Proof

  /// Learns the first event after our position from `Subscribe`.
  ///
  /// - Returns: nil once that is known.
  private func probe(_ credentials: Credentials) async -> SubscriptionEnding? {
    let clock = self.loop.clock
    // A refused subscription must not cost an event at every attempt.
    let (isWaiting, start) = self.state.withLock { ($0.wait != nil, $0.start) }
    let latest = clock.now() + (isWaiting ? Self.likelyRefusalTime : Self.answerTime)
    while !self.state.withLock({ $0.isAnswered }), clock.now() < latest {
      if Task.isCancelled { return nil }
      await self.pause(.milliseconds(50))
    }
    self.state.withLock { $0.probe = Liveness(openedAt: clock.now()) }
    let operation = "Subscribe to \(self.loop.topic)"
    do {
      try await self.loop.client.subscribe(
        Subscription(topic: self.loop.topic, position: start.position, credit: 1),
        credentials: credentials, credit: CreditQueue(),
        onOpen: {
          self.note(.opened)
          self.postHolding()
        },
        onResponse: { await self.takeProbe($0) })
    } catch {
      return .failed(PubSubError(error, operation: operation))
    }
    let isKnown = self.state.withLock { state in
      state.probe = nil
      return state.join.expects
    }
    if isKnown { return nil }
    return .failed(
      PubSubError(.endOfStream, status: .ok, "\(operation): the service ended the stream"))
  }

  /// - Returns: true until an event arrives. Keepalives of the plain subscription are passed on,
  ///   because nothing is between our position and theirs, unless the managed stream has delivered
  ///   something else.
  private func takeProbe(_ view: FetchResponseView) async -> Bool {
    let now = self.loop.clock.now()
    guard let first = view.events.first else {
      let answer = self.state.withLock { state in
        state.probe?.received(pending: view.pendingCredit, at: now)
        state.probe?.resumed(at: now)
        return state.join.receivedKeepalive(at: now)
      }
      guard answer == .handOn else { return true }
      guard await self.stream.passOn(view) else { return false }
      self.postHolding()
      return true
    }
    self.note(.delivered(view.events.count))
    self.post(.passedOver(topic: self.stream.index, eventCount: view.events.count))
    // There is something to export, so from now on silence does not mean the end of the topic.
    self.post(.holding(topic: self.stream.index))
    let held = self.state.withLock { state in
      state.probe = nil
      state.join.expect(ManagedJoin.Event(first, of: view), at: now)
      state.isHandingOnHeld = true
      return state.join.takeHeld()
    }
    for response in held { _ = await self.judge(response, isHeld: true) }
    self.state.withLock { $0.isHandingOnHeld = false }
    self.widen()
    return false
  }

  // MARK: The end

  /// Commits the last position of a run that has read with `Subscribe` because the managed stream
  /// delivered nothing. Until a position is committed, a subscription may begin at the end of the
  /// topic, and each run would find it silent. A managed stream that has delivered a later event is
  /// ahead and is left there.
  private func commitAfterDetour() async {
    let isSilent = self.state.withLock { state in
      guard let detour = state.detour else { return false }
      return detour.until == nil && detour.cause == .elsewhere
    }
    guard isSilent else { return }
    self.stream.end(nil)
    while !self.isFinishing, !Task.isCancelled { await self.pause(.milliseconds(50)) }
    // The only error is that of a login, after which there is nothing to commit with.
    guard !Task.isCancelled, let credentials = try? await self.loop.credentials.credentials() else {
      return
    }
    self.state.withLock { state in
      state.opens(at: .managed, now: self.loop.clock.now())
      state.isCut = true
    }
    _ = await self.call(1, credentials, proving: true) { .closed }
  }

  /// Waits after the end of the topic until the runner has committed the last events.
  private func waitForLastPosition() async {
    self.state.withLock { $0.isCut = true }
    self.stream.end(nil)
    while self.state.withLock({ !$0.isFinishing && $0.isOpen }), !Task.isCancelled {
      await self.pause(.milliseconds(50))
    }
  }

  /// Commits what is durable, waits for the answer, and closes the request side, after which the
  /// service frees the subscription at once.
  private func close() async {
    self.state.withLock { $0.isCut = true }
    let clock = self.loop.clock
    let deadline = clock.now() + Self.closingTime
    while case let now = clock.now(), now < deadline, !Task.isCancelled {
      let isDone = self.state.withLock { state in
        if state.join.isApart { return true }
        if let commit = state.commits.due(at: now, isLast: true) { state.requests.add(commit) }
        return state.commits.isSettled || !state.isOpen
      }
      if isDone { break }
      await self.pause(.milliseconds(20))
    }
    self.state.withLock { $0.requests }.finish()
  }
}

extension PubSubSourceOptions {
  /// Checks that events belong to the topic. The record in the org, not the pipeline, determines the
  /// topic of a managed stream, and events of another topic must not be exported under the pipeline's.
  /// The objects of a channel are unknown.
  func checkManaged(_ schemas: [ResolvedSchema], topic: String) throws(MissingSchema) {
    guard let record = self.managed, !TopicName.isChannel(topic) else { return }
    let expected = TopicName.entity(topic)
    for schema in schemas {
      guard let found = schema.entity, found.lowercased() != expected.lowercased() else { continue }
      throw MissingSchema(
        id: String(decoding: schema.id, as: UTF8.self),
        failure: SourceFailure(
          .configuration, reason: "managed_topic",
          "\(topic): the managed subscription brings events of '\(found.prefix(80))', not of "
            + "'\(expected)'; check source.managed (\(record)) and the topic of its record in the org"
        ))
    }
  }
}
