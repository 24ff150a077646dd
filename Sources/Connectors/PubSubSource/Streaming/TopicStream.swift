internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// Maintains the subscription to one topic: opens it where the runner says, gives credit back
/// before a response is passed on, and reopens it when it fails.
final class TopicStream<Transport: ClientTransport>: Sendable {
  typealias Signal = SourceSignal<PubSubResponse>

  struct State {
    /// The number of events to keep outstanding; reduced once the service has said that it is too
    /// high.
    var window: Int
    var credit: FetchCredit
    var liveness: Liveness
    var openedAt: ContinuousClock.Instant
    /// Asks the open stream for more events.
    var addCredit: (@Sendable (Int) -> Void)?
    var stopAt: ContinuousClock.Instant?
    var retries: Retries
    var progress = StreamProgress()
    var authorization = StreamAuthorization()
    /// A schema that a response needs and that will not come.
    var missingSchema: MissingSchema?
    /// The stream is being closed because nobody takes its responses; until this time, events that
    /// were requested may still come.
    var heldBackUntil: ContinuousClock.Instant?
    var managed = ManagedState()

    /// Whether the open stream has brought something new, or has answered for long enough.
    ///
    /// - Parameter isNew: it has just brought something new.
    func isUseful(isNew: Bool = false, at now: ContinuousClock.Instant) -> Bool {
      isNew || self.progress.isAnswered && now - self.openedAt >= Liveness.usefulLife
    }

    /// Ends the failures in a row.
    ///
    /// - Returns: whether the open stream does so for the first time.
    mutating func worked() -> Bool {
      self.retries.succeeded()
      return self.progress.worked()
    }

    /// Notes a response that is not passed on, so that nothing is gained yet.
    mutating func heard(_ view: FetchResponseView, at now: ContinuousClock.Instant) {
      self.liveness.received(pending: view.pendingCredit, at: now)
      self.liveness.resumed(at: now)
    }
  }

  enum Ending: Sendable {
    case call(PubSubError)
    /// The token was refused, and others would be as well.
    case unauthorized(PubSubError)
    /// A schema that will not come.
    case schema(SourceFailure)
    case idle
    /// Closed on purpose, because nobody takes its responses.
    case heldBack
    case stopped
    /// The managed stream does not continue at our position, so `Subscribe` takes over.
    case apart
    /// `Subscribe` has reached the place where the managed stream began.
    case rejoined
  }

  let index: Int
  let topic: String
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  private let schemas: SchemaResolver<Transport>
  let options: PubSubSourceOptions
  let signals: SignalQueue<Signal>
  let clock: StreamClock
  let state: Lock<State>

  /// If a response finds no room for this long, the stream is closed on purpose: without
  /// credit, the service ends it 60 s after its last response (TheService.md#flow-control).
  private static var roomPatience: Duration { .seconds(30) }
  /// A stream that the service ended sooner than this is not reopened at once.
  private static var normalLife: Duration { .seconds(10) }

  /// - Parameter maxEvents: the number of events that may be delivered to this topic; nil for no
  ///   limit.
  init(
    index: Int, topic: String, client: PubSubClient<Transport>,
    credentials: any CredentialsSource, schemas: SchemaResolver<Transport>,
    options: PubSubSourceOptions, maxEvents: Int?, signals: SignalQueue<Signal>,
    clock: StreamClock = .continuous
  ) {
    self.index = index
    self.topic = topic
    self.client = client
    self.credentials = credentials
    self.schemas = schemas
    self.options = options
    self.signals = signals
    self.clock = clock
    self.state = Lock(
      State(
        window: options.window,
        credit: FetchCredit(window: options.window, allowance: maxEvents),
        liveness: Liveness(openedAt: clock.now()), openedAt: clock.now(),
        retries: Retries(options.retry)))
  }

  /// Gives no more credit. The stream ends after the drain time, or at once if nothing can come.
  func stop() {
    self.state.withLock {
      $0.credit.stop()
      let drainTime = $0.credit.open > 0 ? self.options.drainTime : .zero
      $0.stopAt = $0.stopAt ?? self.clock.now() + drainTime
    }
  }

  /// Allows `count` more events than the limit of the run, if it has one.
  func allow(_ count: Int) {
    let (credit, addCredit) = self.state.withLock { state in
      (state.credit.allow(count, at: self.clock.now()), state.addCredit)
    }
    if let credit { addCredit?(credit) }
  }

  /// Runs until the stream has ended for good, which it reports with `ended`.
  func run() async {
    self.state.withLock {
      $0.retries = Retries(self.options.retry)
      ($0.managed.hasEnded, $0.managed.isDone, $0.managed.wait) = (false, false, nil)
    }
    defer { self.state.withLock { $0.managed.isDone = true } }
    guard await self.fetchMissingSchema() else { return }
    while true {
      await self.waitForAllowance()
      guard let start = await self.startPoint(), !Task.isCancelled else { break }
      let sentReplayID = if case .after = start { true } else { false }
      switch await self.open(at: start) {
      case .stopped:
        if await self.commitAfterDetour() { return }
        return self.end(nil)
      case .apart:
        let failure = self.detourFailure(from: start)
        self.options.onManaged(.detour(reason: failure.description))
        // Without delay, unless no new event has arrived since the previous detour.
        guard await self.wait(after: failure, minimum: .zero, isFirstAtOnce: true) else { return }
      case .rejoined: break
      case .idle:
        let silent = PubSubError(
          .idle, status: .unavailable,
          "Subscribe to \(self.topic): the service sent nothing for 300 s although events were "
            + "requested")
        guard await self.wait(after: silent, minimum: .zero) else { return }
      case .call(let error):
        guard await self.handle(error, sentReplayID: sentReplayID) else { return }
      case .unauthorized(let error):
        return self.end(error.refusedForGood(options: self.options))
      case .schema(let failure): return self.end(failure)
      case .heldBack:
        self.signals.post(.heldBack(topic: self.index))
        await self.waitWhileFull()
      }
    }
    self.end(nil)
  }

  /// Requests a refused schema before the stream is reopened; otherwise the events that need it
  /// would be delivered again at every attempt.
  ///
  /// - Returns: false if it is still missing and the stream has ended.
  private func fetchMissingSchema() async -> Bool {
    guard let missing = self.state.withLock({ $0.missingSchema }) else { return true }
    do throws(SourceFailure) {
      if let id = missing.id {
        try await self.schemas.fetch(
          id, onRetry: { self.signals.post(.schemasFailed(topic: self.index, $0, delay: $1)) })
      }
      self.state.withLock { $0.missingSchema = nil }
      return true
    } catch {
      self.end(self.isStopping ? nil : error)
      return false
    }
  }

  /// A first request has to ask for at least one event. So if the limit is reached, a failed stream
  /// is reopened only once some of its events turn out to have been exported before (`allow`).
  private func waitForAllowance() async {
    while self.state.withLock({ $0.credit.allowance == 0 }), !self.isStopping, !Task.isCancelled {
      await self.clock.sleep(self.clock.now() + .milliseconds(100))
    }
  }

  func end(_ failure: SourceFailure?) {
    // The last signal of a managed stream that was stopped has been posted before its call ended.
    let hasEnded = self.state.withLock { state in
      defer { state.managed.hasEnded = true }
      return state.managed.hasEnded
    }
    if hasEnded { return }
    self.signals.post(.ended(topic: self.index, failure))
  }

  private func startPoint() async -> StartPoint? {
    let answer = StartAnswer()
    self.signals.post(.opening(topic: self.index, reply: { answer.give($0) }))
    return await answer.wait()
  }

  private func open(at start: StartPoint) async -> Ending {
    self.state.withLock { $0.progress.opened(at: start) }
    let credentials: Credentials
    do {
      credentials = try await self.credentials.credentials()
    } catch {
      return .call(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    let ending =
      if let record = self.managedRecord(at: start) {
        await self.openManaged(record, at: start, credentials)
      } else {
        await self.openPlainly(at: start, credentials)
      }
    if case .call(let error) = ending, self.isStopping, error.status == .cancelled {
      return .stopped
    }
    let (missing, isHeldBack) = self.state.withLock { ($0.missingSchema, $0.heldBackUntil != nil) }
    if let missing { return self.isStopping ? .stopped : .schema(missing.failure) }
    if case .apart = ending { return self.isStopping ? .stopped : .apart }
    if !self.isStopping, self.endDetour() { return .rejoined }
    return await self.judge(isHeldBack && !self.isStopping ? .heldBack : ending, credentials)
  }

  private func openPlainly(at start: StartPoint, _ credentials: Credentials) async -> Ending {
    let queue = CreditQueue()
    let window = self.begin { queue.add($0) }
    guard window > 0 else { return .stopped }
    let subscription = Subscription(topic: self.topic, position: start.position, credit: window)
    return await withTaskGroup(of: Ending.self) { group in
      group.addTask { await self.subscribe(subscription, credentials, queue) }
      group.addTask { await self.watch() }
      let first = await group.next() ?? .stopped
      group.cancelAll()
      return first
    }
  }

  /// Call this before a stream is opened.
  ///
  /// - Parameter window: the initial window; nil for that of the options.
  /// - Returns: the credit of the first request; 0 if the stream must not be opened.
  func begin(window: Int? = nil, _ addCredit: @Sendable @escaping (Int) -> Void) -> Int {
    self.state.withLock { state in
      // If a stop has come in the meantime, the first request must not be sent.
      guard state.stopAt == nil else { return 0 }
      let now = self.clock.now()
      state.credit = FetchCredit(
        window: window ?? state.window, allowance: state.credit.allowance)
      state.liveness = Liveness(openedAt: now)
      state.openedAt = now
      state.heldBackUntil = nil
      state.authorization.opened()
      state.addCredit = addCredit
      return state.credit.begin(at: now)
    }
  }

  /// Judges the token by the end of its call.
  private func judge(_ ending: Ending, _ credentials: Credentials) async -> Ending {
    guard case .call(let error) = ending,
      error.disposition(sentReplayID: false) == .reauthenticate
    else {
      if self.state.withLock({ $0.authorization.ended() }) {
        await self.credentials.worked(credentials)
      }
      return ending
    }
    guard !self.isStopping else { return .stopped }
    guard case .newToken = self.state.withLock({ $0.authorization.refused(credentials) }) else {
      return ending
    }
    guard await self.credentials.refused(credentials),
      !self.state.withLock({ $0.authorization.isHopeless })
    else { return .unauthorized(error) }
    return ending
  }

  var isStopping: Bool { self.state.withLock { $0.stopAt != nil } }

  private func subscribe(
    _ subscription: Subscription, _ credentials: Credentials, _ queue: CreditQueue
  ) async -> Ending {
    do {
      try await self.client.subscribe(
        subscription, credentials: credentials, credit: queue,
        onOpen: { self.signals.post(.opened(topic: self.index)) },
        onResponse: { view in
          self.count(delivered: view.events.count)
          return await self.hand(
            on: view, delivered: view.events.count, { queue.add($0) }, credentials)
            && !self.hasEndedDetour(with: view)
        })
    } catch {
      return .call(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    return .call(
      PubSubError(
        .endOfStream, status: .ok, "Subscribe to \(self.topic): the service ended the stream"))
  }

  /// Counts delivered events, whether or not they are used.
  func count(delivered: Int) {
    if self.options.allowance?.received(delivered) == false { self.stop() }
  }

  /// Passes on a response. Gives credit back before the response is decoded, so that the next
  /// events are already in flight.
  ///
  /// - Parameter delivered: the events that the service sent with the response, including those
  ///   that are not passed on.
  func hand(
    on view: FetchResponseView, delivered: Int, _ addCredit: @Sendable (Int) -> Void,
    _ credentials: Credentials
  ) async -> Bool {
    let now = self.clock.now()
    // Each opening of a managed stream may cost an event, which a keepalive alone is not worth.
    let mayBeNew = self.options.managed == nil || !view.events.isEmpty
    let (hasWorked, credit, provesToken) = self.state.withLock { state in
      let isNew = state.progress.received(view) && mayBeNew
      let hasWorked = state.isUseful(isNew: isNew, at: now) && state.worked()
      state.liveness.received(pending: view.pendingCredit, at: now)
      let credit = state.credit.received(
        eventCount: delivered, pending: view.pendingCredit, at: now)
      return (hasWorked, credit, state.authorization.answered(at: now))
    }
    if let credit { addCredit(credit) }
    if hasWorked { self.signals.post(.worked(topic: self.index)) }
    if provesToken { await self.credentials.worked(credentials) }
    guard let (response, byteCount) = await self.resolve(view) else { return false }
    self.signals.post(
      .response(topic: self.index, response, receivedAt: now),
      weight: self.options.weight(eventCount: view.events.count, byteCount: byteCount))
    await self.waitForRoom()
    return self.state.withLock { state in
      state.liveness.resumed(at: self.clock.now())
      // After a stop, nothing else comes once everything requested has arrived. A stream that is
      // held back takes at most as much again as the queue may hold, so that memory stays bounded.
      return !(state.credit.isStopped && state.credit.open == 0)
        && (state.heldBackUntil == nil || !self.signals.isOverfull)
    }
  }

  /// Waits until the runner takes responses again. If that takes too long, gives no more credit:
  /// takes what was requested, so that no event is delivered but not exported, and ends the stream.
  private func waitForRoom() async {
    guard !self.signals.hasRoom, self.state.withLock({ $0.heldBackUntil == nil }) else { return }
    let deadline = self.clock.now() + Self.roomPatience
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.signals.waitForRoom() }
      group.addTask { await self.clock.sleep(deadline) }
      _ = await group.next()
      group.cancelAll()
    }
    let now = self.clock.now()
    guard now >= deadline, !self.signals.hasRoom, !Task.isCancelled else { return }
    self.state.withLock { state in
      state.credit.stop()
      state.heldBackUntil = now + self.options.drainTime
    }
  }

  /// Waits, with the stream closed, until its responses have been taken.
  private func waitWhileFull() async {
    while !self.signals.hasRoom, !self.isStopping, !Task.isCancelled {
      await self.clock.sleep(self.clock.now() + .milliseconds(100))
    }
  }

  /// Gets the schemas of a response. Later responses and the end of the topic wait, because the
  /// position stays before a response that is not passed on.
  ///
  /// - Returns: what to pass on, and its size; nil if there will be no schema or nobody waits for
  ///   it any longer.
  func resolve(
    _ view: FetchResponseView
  ) async -> (response: PubSubResponse, byteCount: Int)? {
    do throws(MissingSchema) {
      let resolution = try await self.schemas.resolve(
        view, onFetch: { self.signals.post(.holding(topic: self.index)) },
        onRetry: { self.signals.post(.schemasFailed(topic: self.index, $0, delay: $1)) })
      try self.checkManagedTopic(resolution.schemas)
      try await self.schemas.prepare(resolution.schemas, options: self.options)
      return (
        PubSubResponse(view: view, schemas: resolution.schemas),
        view.bytes.count + resolution.newByteCount
      )
    } catch {
      if !Task.isCancelled { self.state.withLock { $0.missingSchema = error } }
      return nil
    }
  }

  /// Returns when the stream has been silent for too long or the drain time is over.
  private func watch() async -> Ending {
    while !Task.isCancelled {
      if let ending = self.look() { return ending }
      await self.clock.sleep(
        ProcessClock.nextLook(
          from: self.clock.now(), after: .milliseconds(self.isStopping ? 50 : 250)))
    }
    return .stopped
  }

  /// Gives credit that is due.
  ///
  /// - Returns: why the stream has to be closed now; nil if it does not.
  func look() -> Ending? {
    let now = self.clock.now()
    let (check, stopAt, heldBackUntil) = self.state.withLock {
      ($0.liveness.check(at: now), $0.stopAt, $0.heldBackUntil)
    }
    if let stopAt, now >= stopAt { return .stopped }
    if let heldBackUntil, now >= heldBackUntil { return .heldBack }
    switch check {
    case .idle: return .idle
    case .giveCredit:
      let (credit, addCredit) = self.state.withLock { state in
        state.liveness.creditGiven()
        return (state.credit.restart(at: now), state.addCredit)
      }
      if let credit { addCredit?(credit) }
    case .alive: break
    }
    return nil
  }

  /// Returns false if the stream has ended for good.
  private func handle(_ error: PubSubError, sentReplayID: Bool) async -> Bool {
    if self.isStopping {
      self.end(nil)
      return false
    }
    // Requesting fewer events makes responses smaller.
    let isTooLarge = error.isOversizedAnswer
    if isTooLarge || error.serviceCode == .fetchOverflow {
      let wasSmallest = self.state.withLock { state in
        defer { state.window = max(state.window / 2, 1) }
        return state.window == 1
      }
      if isTooLarge, !wasSmallest { return await self.wait(after: error, minimum: .zero) }
    }
    switch error.disposition(sentReplayID: sentReplayID) {
    case .retry(let minimum) where error.serviceCode == .managedAlreadyActive:
      return await self.waitForSubscription(after: error, minimum: minimum)
    case .retry(let minimum): return await self.wait(after: error, minimum: minimum)
    case .reauthenticate: return await self.wait(after: error, minimum: .zero)
    case .replay: self.end(error.failure(.invalidReplay, options: self.options))
    case .quota:
      if self.options.retry.giveUpAfter == nil {
        return await self.wait(after: error, minimum: PubSubError.quotaDelay)
      }
      self.end(error.failure(.quota, options: self.options))
    case .stop: self.end(error.failure(.refused, options: self.options))
    case .bug: self.end(error.failure(.bug, options: self.options))
    }
    return false
  }

  private func wait(after error: PubSubError, minimum: Duration) async -> Bool {
    let failure = error.failure(.unavailable, options: self.options)
    // A server that cannot prove its identity will not do so in a minute.
    if failure.disposition == .configuration {
      self.end(failure)
      return false
    }
    // The service ends long-lived streams from time to time, and sessions end. The first time,
    // reopen at once.
    let isRegular =
      error.code == .endOfStream
      || error.disposition(sentReplayID: false) == .reauthenticate
    let now = self.clock.now()
    let (hasWorked, hasLasted, lastMessage) = self.state.withLock { state in
      // Silence is not a part of a useful life.
      let hasWorked = error.code != .idle && state.isUseful(at: now) && state.worked()
      return (hasWorked, now - state.openedAt >= Self.normalLife, state.liveness.lastMessage)
    }
    if hasWorked { self.signals.post(.worked(topic: self.index)) }
    return await self.wait(
      after: failure, minimum: minimum, isFirstAtOnce: isRegular && hasLasted,
      silence: error.code == .idle ? lastMessage : nil)
  }

  private func wait(
    after failure: SourceFailure, minimum: Duration, isFirstAtOnce: Bool,
    silence: ContinuousClock.Instant? = nil
  ) async -> Bool {
    let now = self.clock.now()
    let (delay, retries) = self.state.withLock { state -> (Duration?, Retries) in
      if isFirstAtOnce, state.retries.failures == 0 {
        _ = state.retries.failed(at: now, random: 0)
        return (.zero, state.retries)
      }
      let delay = state.retries.failed(
        at: now, silence: silence, minimum: minimum, random: .random(in: 0..<1))
      return (delay, state.retries)
    }
    guard let delay else {
      var failure = failure
      failure.description += retries.verdict(at: now)
      self.end(failure)
      return false
    }
    await self.wait(delay, after: failure)
    return true
  }

  /// Reports why the stream is not open, and waits until it is time to reopen it.
  func wait(_ delay: Duration, after failure: SourceFailure) async {
    let until = self.clock.now() + delay
    self.signals.post(.retrying(topic: self.index, failure, delay: delay))
    while case let now = self.clock.now(), now < until, !self.isStopping, !Task.isCancelled {
      await self.clock.sleep(
        min(until, ProcessClock.nextLook(from: now, after: .milliseconds(100))))
    }
  }
}

extension StartPoint {
  var position: Subscription.Position {
    switch self {
    case .earliest: .earliest
    case .latest: .latest
    // Only `ManagedSubscribe` begins there; see `managedRecord(at:)`.
    case .managed: preconditionFailure("a plain subscription has no position of the service")
    case .after(let id): .after(id.bytes)
    }
  }
}
