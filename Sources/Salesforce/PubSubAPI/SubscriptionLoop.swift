package import Clocks
internal import EventLoop
package import GRPCCore

/// Keeps one subscription open: makes its calls, gives credit, watches whether the service is alive,
/// replaces refused tokens, and makes another call when one has failed. What the events mean and
/// where a call begins is the subscriber's business.
package final class SubscriptionLoop<Transport: ClientTransport>: Sendable {
  /// Who gives back the credit of events.
  package enum CreditRule: Sendable {
    /// The loop, as soon as they arrive, up to this many events in all; nil for no limit. `allow`
    /// raises the limit.
    case onArrival(limit: Int?)
    /// The subscriber, with `allow`, when they have been consumed. Requested events and those that
    /// were not consumed are together never more than the window.
    case onConsumption
  }

  private struct State {
    /// The number of events to keep outstanding; reduced once the service has said that it is too
    /// high.
    var window: Int
    var credit: FetchCredit
    var liveness: Liveness
    var openedAt: ContinuousClock.Instant
    /// A response has arrived since then.
    var isAnswered = false
    /// The call has proven useful.
    var hasWorked = false
    var retries: Retries
    var authorization = StreamAuthorization()
    /// The credentials of the current call.
    var credentials: Credentials?
    /// The open call.
    var call: SubscriptionCall?
    /// When the subscription ends.
    var stopAt: ContinuousClock.Instant?
    /// Those who look again later; a stop wakes them.
    var sleepers: Set<Task<Void, Never>> = []
    /// The call is being closed because nobody takes its responses; until this time, events that
    /// were requested may still come.
    var heldBackUntil: ContinuousClock.Instant?

    /// Notes that the call is open and answers. It is useful if it has brought something new, or
    /// has answered for long enough; that ends the failures in a row.
    ///
    /// - Returns: whether it is useful for the first time.
    mutating func worked(isNew: Bool, at now: ContinuousClock.Instant) -> Bool {
      guard isNew || self.isAnswered && now - self.openedAt >= Liveness.usefulLife else {
        return false
      }
      self.retries.succeeded()
      defer { self.hasWorked = true }
      return !self.hasWorked
    }
  }

  /// A call that the service ended sooner than this is not made again at once.
  private static var normalLife: Duration { .seconds(10) }

  package let topic: String
  package let client: PubSubClient<Transport>
  package let credentials: any CredentialsSource
  package let clock: StreamClock
  private let rule: CreditRule
  private let isIdentityError: @Sendable (any Error) -> Bool
  private let state: Lock<State>

  /// - Parameters:
  ///   - window: events outstanding, clamped to 1…100.
  ///   - isIdentityError: whether a call failed because the server could not prove its identity.
  package init(
    topic: String, client: PubSubClient<Transport>, credentials: any CredentialsSource,
    window: Int, rule: CreditRule, retry: RetrySchedule,
    isIdentityError: @escaping @Sendable (any Error) -> Bool, clock: StreamClock
  ) {
    self.topic = topic
    self.client = client
    self.credentials = credentials
    self.rule = rule
    self.isIdentityError = isIdentityError
    self.clock = clock
    let limit: Int? = if case .onArrival(let limit) = rule { limit } else { nil }
    let credit = FetchCredit(window: window, allowance: limit)
    self.state = Lock(
      State(
        window: credit.window, credit: credit, liveness: Liveness(openedAt: clock.now()),
        openedAt: clock.now(), retries: Retries(retry)))
  }

  // MARK: Running

  /// Runs until the subscriber ends it, the task is cancelled or a call has failed for good. Can be
  /// called again afterwards.
  package func run(_ subscriber: some Subscriber) async throws(PersistentCall.Failure) {
    self.state.withLock { $0.retries = Retries($0.retries.schedule) }
    while let call = await subscriber.start(), !Task.isCancelled {
      let ending = await self.make(call)
      if Task.isCancelled { return }
      switch await subscriber.ended(ending) {
      case .reopen:
        guard case .failed(let error) = ending else { continue }
        try await self.recover(from: error, sentReplayID: call.sentReplayID, subscriber)
      case .retry(let error): try await self.pause(after: error, isFirstAtOnce: true, subscriber)
      case .wait(let error, let delay):
        self.state.withLock { $0.retries.excuse(delay) }
        await self.pause(delay, after: error, subscriber)
      case .end: return
      }
    }
  }

  private func make(_ call: SubscriptionCall) async -> SubscriptionEnding {
    self.state.withLock { state in
      (state.isAnswered, state.hasWorked, state.heldBackUntil) = (false, false, nil)
      state.authorization.opened()
      state.credentials = nil
    }
    let credentials: Credentials
    do {
      credentials = try await self.credentials.credentials()
    } catch {
      return .failed(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    guard let credit = self.begin(call, credentials) else { return .closed }
    let ending = await call.make(credit, credentials)
    self.state.withLock { $0.call = nil }
    if !ending.isRefusalOfToken, self.state.withLock({ $0.authorization.ended() }) {
      await self.credentials.worked(credentials)
    }
    return self.isStopping || self.isHeldBack ? .closed : ending
  }

  /// - Returns: the credit of the first request; nil if a stop has come in the meantime.
  private func begin(_ call: SubscriptionCall, _ credentials: Credentials) -> Int? {
    self.state.withLock { state in
      guard state.stopAt == nil else { return nil }
      let now = self.clock.now()
      let allowance =
        if case .onConsumption = self.rule { state.window as Int? } else { state.credit.allowance }
      state.credit = FetchCredit(window: call.window ?? state.window, allowance: allowance)
      state.liveness = Liveness(openedAt: now)
      state.openedAt = now
      state.credentials = credentials
      state.call = call
      return state.credit.begin(at: now)
    }
  }

  // MARK: Subscribe

  /// The call `Subscribe` that begins at a position.
  package func subscribe(
    at position: Subscription.Position, for subscriber: some Subscriber
  ) -> SubscriptionCall {
    let queue = CreditQueue()
    let sentReplayID = if case .after = position { true } else { false }
    return SubscriptionCall(
      sentReplayID: sentReplayID, addCredit: { queue.add($0) }, finish: { queue.finish() },
      make: { credit, credentials in
        let subscription = Subscription(topic: self.topic, position: position, credit: credit)
        return await withTaskGroup(of: SubscriptionEnding.self) { group in
          group.addTask(executorPreference: self.client.executor) {
            await self.subscribe(subscription, credentials, queue, subscriber)
          }
          group.addTask { await self.watch(subscriber) }
          defer { group.cancelAll() }
          return await group.next() ?? .closed
        }
      })
  }

  private func subscribe(
    _ subscription: Subscription, _ credentials: Credentials, _ queue: CreditQueue,
    _ subscriber: some Subscriber
  ) async -> SubscriptionEnding {
    let operation = "Subscribe to \(self.topic)"
    let hasLeft = Lock(false)
    do {
      try await self.client.subscribe(
        subscription, credentials: credentials, credit: queue,
        onOpen: { subscriber.note(.opened) },
        onResponse: { view in
          subscriber.note(.delivered(view.events.count))
          let goesOn = await self.receive(view, delivered: view.events.count) {
            await subscriber.received(view)
          }
          if !goesOn { hasLeft.withLock { $0 = true } }
          return goesOn
        })
    } catch {
      return .failed(PubSubError(error, operation: operation))
    }
    if hasLeft.withLock({ $0 }) { return .closed }
    return .failed(
      PubSubError(.endOfStream, status: .ok, "\(operation): the service ended the stream"))
  }

  // MARK: For calls

  /// Gives credit that is due, until the call has to be closed.
  ///
  /// - Returns: why.
  package func watch(_ subscriber: some Subscriber) async -> SubscriptionEnding {
    while !Task.isCancelled {
      let now = self.clock.now()
      if let ending = subscriber.tick(at: now) ?? self.check(at: now) { return ending }
      let isStopping = self.isStopping
      await self.sleep(
        until: self.clock.nextLook(now, .milliseconds(isStopping ? 50 : 250)),
        knowsStop: isStopping)
    }
    return .closed
  }

  private func check(at now: ContinuousClock.Instant) -> SubscriptionEnding? {
    let (check, closeAt) = self.state.withLock { state in
      (state.liveness.check(at: now), [state.stopAt, state.heldBackUntil].compactMap { $0 }.min())
    }
    if let closeAt, now >= closeAt { return .closed }
    if check == .idle { return .failed(self.silence) }
    if check == .giveCredit {
      self.giveCredit { state in
        state.liveness.creditGiven()
        return state.credit.restart(at: now)
      }
    }
    return nil
  }

  /// The error of a call on which nothing came.
  package var silence: PubSubError {
    PubSubError(
      .idle, status: .unavailable,
      "Subscribe to \(self.topic): the service sent nothing for 300 s although events were "
        + "requested")
  }

  /// Accounts for a response, and has it passed on. Gives credit back before that, so that the next
  /// events are already in flight.
  ///
  /// - Parameter delivered: the events that the service sent with the response, including those
  ///   that are not passed on.
  /// - Returns: false to end the call.
  package func receive(
    _ view: FetchResponseView, delivered: Int, passOn: () async -> Bool
  ) async -> Bool {
    let now = self.clock.now()
    let provenCredentials = self.state.withLock { state in
      state.liveness.received(pending: view.pendingCredit, at: now)
      return state.authorization.answered(at: now) ? state.credentials : nil
    }
    self.giveCredit {
      $0.credit.received(eventCount: delivered, pending: view.pendingCredit, at: now)
    }
    if let provenCredentials { await self.credentials.worked(provenCredentials) }
    let goesOn = await passOn()
    return self.state.withLock { state in
      state.liveness.resumed(at: self.clock.now())
      // After a stop, nothing else comes once everything requested has arrived.
      return goesOn && !(state.credit.isStopped && state.credit.open == 0)
    }
  }

  /// Notes a response that is not passed on, so that nothing is gained yet.
  ///
  /// - Parameter givesCredit: gives the credit of its events back.
  package func heard(_ view: FetchResponseView, givesCredit: Bool = false) {
    let now = self.clock.now()
    self.giveCredit { state in
      state.liveness.received(pending: view.pendingCredit, at: now)
      state.liveness.resumed(at: now)
      guard givesCredit else { return nil }
      return state.credit.received(
        eventCount: view.events.count, pending: view.pendingCredit, at: now)
    }
  }

  /// Notes a message that says nothing about credit.
  package func heard() {
    let now = self.clock.now()
    self.state.withLock { $0.liveness.heard(at: now) }
  }

  /// Requests as many events as the loop's window has, after a call that began with less.
  package func widen() {
    self.giveCredit { $0.credit.widen(to: $0.window, at: self.clock.now()) }
  }

  private func giveCredit(_ change: (inout State) -> Int?) {
    let (credit, call) = self.state.withLock { (change(&$0), $0.call) }
    if let credit { call?.addCredit(credit) }
  }

  // MARK: For subscribers

  /// Allows `count` more events: beyond the limit, or because as many were consumed.
  package func allow(_ count: Int) {
    self.giveCredit { $0.credit.allow(count, at: self.clock.now()) }
  }

  /// Notes that the open call has brought a response.
  ///
  /// - Parameter isNew: it has brought something new.
  /// - Returns: whether the call has now proven useful for the first time.
  package func answered(isNew: Bool) -> Bool {
    let now = self.clock.now()
    return self.state.withLock { state in
      state.isAnswered = true
      return state.worked(isNew: isNew, at: now)
    }
  }

  /// Gives no more credit, and ends the call once the service has, or after this time.
  package func holdBack(draining time: Duration) {
    let call = self.state.withLock { state in
      state.credit.stop()
      state.heldBackUntil = state.heldBackUntil ?? self.clock.now() + time
      return state.call
    }
    call?.finish()
  }

  package var isHeldBack: Bool { self.state.withLock { $0.heldBackUntil != nil } }

  /// Gives no more credit and ends the subscription: once the service has ended the call, after this
  /// time, or at once if nothing can come.
  package func stop(draining time: Duration) {
    let (sleepers, call) = self.state.withLock { state in
      state.credit.stop()
      state.stopAt = state.stopAt ?? self.clock.now() + (state.credit.open > 0 ? time : .zero)
      return (state.sleepers, state.call)
    }
    call?.finish()
    for sleeper in sleepers { sleeper.cancel() }
  }

  package var isStopping: Bool { self.state.withLock { $0.stopAt != nil } }

  /// The number of events to keep outstanding.
  package var window: Int { self.state.withLock { $0.window } }

  /// The number of events that are requested and have not come.
  package var openCredit: Int { self.state.withLock { $0.credit.open } }

  /// A first request has to ask for at least one event.
  package var mayRequest: Bool { self.state.withLock { $0.credit.allowance != 0 } }

  /// Waits until the condition holds no longer, the subscription stops or the task is cancelled.
  package func wait(while condition: () -> Bool) async {
    while condition(), !self.isStopping, !Task.isCancelled {
      await self.sleep(until: self.clock.now() + .milliseconds(100))
    }
  }

  /// Sleeps until a time or a stop.
  ///
  /// - Parameter knowsStop: the caller has seen the stop and sleeps nevertheless.
  private func sleep(
    until deadline: ContinuousClock.Instant, knowsStop: Bool = false
  ) async {
    let sleeper = Task { await self.clock.sleep(deadline) }
    let isStopping = self.state.withLock { state in
      state.sleepers.insert(sleeper)
      return state.stopAt != nil
    }
    if isStopping, !knowsStop { sleeper.cancel() }
    await withTaskCancellationHandler {
      await sleeper.value
    } onCancel: {
      sleeper.cancel()
    }
    self.state.withLock { _ = $0.sleepers.remove(sleeper) }
  }

  // MARK: Failures

  private func recover(
    from error: PubSubError, sentReplayID: Bool, _ subscriber: some Subscriber
  ) async throws(PersistentCall.Failure) {
    // Requesting fewer events makes responses smaller.
    let isTooLarge = error.isOversizedAnswer
    if isTooLarge || error.serviceCode == .fetchOverflow {
      let wasSmallest = self.state.withLock { state in
        defer { state.window = max(state.window / 2, 1) }
        return state.window == 1
      }
      if isTooLarge, !wasSmallest { return try await self.pause(after: error, subscriber) }
    }
    switch error.disposition(sentReplayID: sentReplayID) {
    case .retry(let minimum): try await self.pause(after: error, minimum: minimum, subscriber)
    case .reauthenticate:
      guard await self.replaceToken() else {
        throw PersistentCall.Failure(error: error, verdict: .tokensRefused)
      }
      try await self.pause(after: error, subscriber)
    case .quota where self.state.withLock({ $0.retries.schedule.giveUpAfter == nil }):
      try await self.pause(after: error, minimum: PubSubError.quotaDelay, subscriber)
    case let final: throw PersistentCall.Failure(error: error, verdict: .final(final))
    }
  }

  /// - Returns: false if other tokens would be refused as well.
  private func replaceToken() async -> Bool {
    let refused = self.state.withLock { state -> Credentials? in
      guard let credentials = state.credentials,
        case .newToken = state.authorization.refused(credentials)
      else { return nil }
      return credentials
    }
    guard let refused else { return true }
    return await self.credentials.refused(refused)
      && !self.state.withLock { $0.authorization.isHopeless }
  }

  private func pause(
    after error: PubSubError, minimum: Duration = .zero, isFirstAtOnce: Bool = false,
    _ subscriber: some Subscriber
  ) async throws(PersistentCall.Failure) {
    // A server that cannot prove its identity will not do so in a minute.
    if let cause = error.cause, self.isIdentityError(cause) {
      throw PersistentCall.Failure(error: error, verdict: .untrustedPeer)
    }
    let now = self.clock.now()
    let (hasWorked, delay, retries) = self.state.withLock { state in
      // Silence is not a part of a useful life.
      let hasWorked = !isFirstAtOnce && error.code != .idle && state.worked(isNew: false, at: now)
      // The service ends long-lived calls from time to time, and sessions end. The first time, call
      // again at once.
      let isRegular =
        isFirstAtOnce
        || now - state.openedAt >= Self.normalLife
          && (error.code == .endOfStream
            || error.disposition(sentReplayID: false) == .reauthenticate)
      if isRegular, state.retries.failures == 0 {
        _ = state.retries.failed(at: now, random: 0)
        return (hasWorked, Duration.zero as Duration?, state.retries)
      }
      let delay = state.retries.failed(
        at: now, silence: error.code == .idle ? state.liveness.lastMessage : nil, minimum: minimum,
        random: .random(in: 0..<1))
      return (hasWorked, delay, state.retries)
    }
    if hasWorked { subscriber.note(.worked) }
    guard let delay else {
      throw PersistentCall.Failure(error: error, verdict: .gaveUp(retries, at: now))
    }
    await self.pause(delay, after: error, subscriber)
  }

  /// Says why no call is open, and waits until it is time for the next one.
  private func pause(
    _ delay: Duration, after error: PubSubError, _ subscriber: some Subscriber
  ) async {
    let end = self.clock.now() + delay
    subscriber.note(.pausing(error, delay))
    while case let now = self.clock.now(), now < end, !self.isStopping, !Task.isCancelled {
      await self.sleep(until: min(end, self.clock.nextLook(now, .milliseconds(100))))
    }
  }
}

extension SubscriptionEnding {
  fileprivate var isRefusalOfToken: Bool {
    guard case .failed(let error) = self else { return false }
    return error.disposition(sentReplayID: false) == .reauthenticate
  }
}
