internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import PubSubAPI

extension EventStream {
  enum Ending: Sendable {
    case call(PubSubError)
    /// The token was refused, and so would others be.
    case unauthorized(PubSubError)
    case idle
    /// Closed on purpose: the consumer takes nothing.
    case heldBack
    case closed
  }

  /// After so long without credit the call is closed on purpose: the service ends it 60 s after its
  /// last response (TheService.md#flow-control).
  static var creditPatience: Duration { .seconds(30) }
  /// A call that the service ended after less is not made again at once.
  static var normalLife: Duration { .seconds(10) }

  /// Keeps the subscription until the consumer closes it, the task is cancelled or it fails for good;
  /// tells the consumer of the end.
  func run() async {
    while await self.waitForConsumer() {
      let ending = await self.open()
      guard !Task.isCancelled, !self.isClosed else { break }
      self.state.withLock { $0.position.interrupted() }
      do throws(PubSubError) {
        try await self.recover(from: ending)
      } catch {
        return self.post(.finished(error))
      }
    }
    self.finish()
  }

  /// A first request asks for one event at least, and by then the consumer has taken what there was.
  ///
  /// - Returns: false when nobody waits for events any more.
  private func waitForConsumer() async -> Bool {
    while !Task.isCancelled, !self.isClosed {
      if self.state.withLock({ $0.waiting == 0 }) { return true }
      await self.clock.sleep(self.clock.now() + .milliseconds(100))
    }
    return false
  }

  private func open() async -> Ending {
    self.state.withLock { $0.isAnswered = false }
    let credentials: Credentials
    do {
      credentials = try await self.credentials.credentials()
    } catch {
      return .call(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    let queue = CreditQueue()
    let subscription = self.state.withLock { state in
      let now = self.clock.now()
      state.credit = FetchCredit(window: state.window, allowance: state.window)
      state.liveness = Liveness(openedAt: now)
      state.openedAt = now
      state.starvedSince = nil
      state.consumed = 0
      state.authorization.opened()
      state.usedCredentials = credentials
      state.queue = queue
      return Subscription(
        topic: self.topic, position: state.position.start, credit: state.credit.begin(at: now))
    }
    let ending = await withTaskGroup(of: Ending.self) { group in
      group.addTask { await self.subscribe(subscription, credentials, queue) }
      group.addTask { await self.watch() }
      let first = await group.next() ?? .closed
      group.cancelAll()
      return first
    }
    return await self.judge(ending, credentials)
  }

  private func subscribe(
    _ subscription: Subscription, _ credentials: Credentials, _ queue: CreditQueue
  ) async -> Ending {
    do {
      try await self.client.subscribe(
        subscription, credentials: credentials, credit: queue,
        onResponse: { await self.received($0) })
    } catch {
      return .call(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    return .call(
      PubSubError(
        .endOfStream, status: .ok, "Subscribe to \(self.topic): the service ended the stream"))
  }

  /// What the end of a call says about its token.
  private func judge(_ ending: Ending, _ credentials: Credentials) async -> Ending {
    guard case .call(let error) = ending,
      error.disposition(sentReplayID: false) == .reauthenticate
    else {
      if self.state.withLock({ $0.authorization.ended() }) {
        await self.credentials.worked(credentials)
      }
      return ending
    }
    guard case .newToken = self.state.withLock({ $0.authorization.refused(credentials) }) else {
      return ending
    }
    guard await self.credentials.refused(credentials),
      !self.state.withLock({ $0.authorization.isHopeless })
    else { return .unauthorized(error) }
    return ending
  }

  /// Returns when the service has been silent for too long, the consumer takes nothing or has left.
  private func watch() async -> Ending {
    while !Task.isCancelled {
      let now = self.clock.now()
      let (ending, credit, queue) = self.state.withLock { self.check(&$0, at: now) }
      if let ending { return ending }
      if let credit { queue?.add(credit) }
      await self.clock.sleep(ProcessClock.nextLook(from: now, after: .milliseconds(250)))
    }
    return .closed
  }

  private func check(
    _ state: inout State, at now: ContinuousClock.Instant
  ) -> (Ending?, Int?, CreditQueue?) {
    if state.isClosed { return (.closed, nil, nil) }
    if let since = state.starvedSince, now - since >= Self.creditPatience {
      // Slow, but alive: less than half a window at a time then.
      guard let credit = self.giveCredit(&state) else { return (.heldBack, nil, nil) }
      return (nil, credit, state.queue)
    }
    switch state.liveness.check(at: now) {
    case .idle: return (.idle, nil, nil)
    case .giveCredit:
      state.liveness.creditGiven()
      return (nil, state.credit.restart(at: now), state.queue)
    case .alive: return (nil, nil, nil)
    }
  }

  /// Returns when the call is to be made again.
  ///
  /// - Throws: why it is not.
  private func recover(from ending: Ending) async throws(PubSubError) {
    switch ending {
    case .closed, .heldBack: return
    case .idle:
      try await self.pause(
        after: PubSubError(
          .idle, status: .unavailable,
          "Subscribe to \(self.topic): the service sent nothing for 300 s although events were "
            + "requested"))
    case .unauthorized(let error): throw error
    case .call(let error): try await self.handle(error)
    }
  }

  private func handle(_ error: PubSubError) async throws(PubSubError) {
    // Fewer events make smaller responses.
    let isTooLarge = error.isOversizedAnswer
    if isTooLarge || error.serviceCode == .fetchOverflow {
      let wasSmallest = self.state.withLock { state in
        defer { state.window = max(state.window / 2, 1) }
        return state.window == 1
      }
      if isTooLarge, !wasSmallest { return try await self.pause(after: error) }
    }
    let sentReplayID = self.state.withLock { state in
      if case .after = state.position.start { true } else { false }
    }
    switch error.disposition(sentReplayID: sentReplayID) {
    case .retry(let minimum): try await self.pause(after: error, minimum: minimum)
    case .reauthenticate: try await self.pause(after: error)
    case .quota where self.state.withLock({ $0.retries.schedule.giveUpAfter == nil }):
      try await self.pause(after: error, minimum: PubSubError.quotaDelay)
    case .replay, .quota, .stop, .bug: throw error
    }
  }

  private func pause(
    after error: PubSubError, minimum: Duration = .zero
  ) async throws(PubSubError) {
    if let cause = error.cause, self.isIdentityError(cause) { throw error }
    let now = self.clock.now()
    let (delay, retries) = self.state.withLock { state -> (Duration?, Retries) in
      // Silence is not a part of a useful life.
      if error.code != .idle, state.hasLasted(at: now) { state.retries.succeeded() }
      // The service ends long-lived calls now and then, and sessions end: again at once, the first
      // time.
      let isNormal =
        error.code == .endOfStream || error.disposition(sentReplayID: false) == .reauthenticate
      if isNormal, state.retries.failures == 0, now - state.openedAt >= Self.normalLife {
        _ = state.retries.failed(at: now, random: 0)
        return (.zero, state.retries)
      }
      let silence = error.code == .idle ? state.liveness.lastMessage : nil
      let delay = state.retries.failed(
        at: now, silence: silence, minimum: minimum, random: .random(in: 0..<1))
      return (delay, state.retries)
    }
    guard let delay else {
      var error = error
      error.message += retries.verdict(at: now, setting: "retry.giveUpAfter")
      throw error
    }
    self.onRetry(error, delay)
    let end = now + delay
    while case let now = self.clock.now(), now < end, !self.isClosed, !Task.isCancelled {
      await self.clock.sleep(min(end, now + .milliseconds(100)))
    }
  }
}
