internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import PubSubAPI

/// One subscription, between the task that runs it and the task that consumes its events.
///
/// Credit follows the consumer: what has been asked for and what has been received but not consumed
/// are together never more than the window. Without credit for long, the call is closed on purpose
/// before the service does it, and opened again when the consumer has taken all events so far.
final class EventStream<Transport: ClientTransport>: Sendable {
  enum Delivery: Sendable {
    case events([Event])
    /// Nothing follows.
    case finished((any Error)?)
  }

  struct State {
    var position: StreamPosition
    var retries: Retries
    var authorization = StreamAuthorization()
    /// Events to keep outstanding; less than asked for once the service said it is too much.
    var window: Int
    var credit: FetchCredit
    var liveness: Liveness
    var queue: CreditQueue?
    var openedAt: ContinuousClock.Instant
    /// A response has arrived since then.
    var isAnswered = false
    /// Since when nothing more may come, for want of credit.
    var starvedSince: ContinuousClock.Instant?
    /// Received, and not consumed.
    var waiting = 0
    /// Consumed, and not yet asked for again.
    var consumed = 0
    /// What the consumer has at hand.
    var batch: ArraySlice<Event> = []
    /// The credentials of the current call.
    var usedCredentials: Credentials?
    var isClosed = false
    /// The consumer has learned of the end.
    var isOver = false

    /// Whether the call has answered for long enough to be useful without anything new.
    func hasLasted(at now: ContinuousClock.Instant) -> Bool {
      self.isAnswered && now - self.openedAt >= Liveness.usefulLife
    }
  }

  let topic: String
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  let isIdentityError: @Sendable (any Error) -> Bool
  let onRetry: @Sendable (PubSubError, Duration) -> Void
  let clock: StreamClock
  let state: Lock<State>
  private let schemas: EventSchemas
  /// Responses for the consumer, weighed by their bytes.
  private let deliveries = SignalQueue<Delivery>(limit: 8 << 20)

  /// - Parameter window: events outstanding, clamped to 1…100.
  init(
    topic: String, start: Subscription.Position, window: Int, client: PubSubClient<Transport>,
    credentials: any CredentialsSource, schemas: EventSchemas, retry: RetrySchedule,
    isIdentityError: @escaping @Sendable (any Error) -> Bool,
    onRetry: @escaping @Sendable (PubSubError, Duration) -> Void = { _, _ in },
    clock: StreamClock = .continuous
  ) {
    self.topic = topic
    self.client = client
    self.credentials = credentials
    self.schemas = schemas
    self.isIdentityError = isIdentityError
    self.onRetry = onRetry
    self.clock = clock
    let now = clock.now()
    let credit = FetchCredit(window: window)
    self.state = Lock(
      State(
        position: StreamPosition(start), retries: Retries(retry), window: credit.window,
        credit: credit, liveness: Liveness(openedAt: now), openedAt: now))
  }

  // MARK: The consumer's side

  /// The next event; nil when the client was shut down. One task at a time.
  ///
  /// Throws what ended the subscription, or `CancellationError`.
  func next() async throws -> Event? {
    while true {
      if let event = self.take() { return event }
      switch await self.receive() {
      case .events(let events): self.state.withLock { $0.batch = events[...] }
      case .finished(let error):
        self.close()
        if let error { throw error }
        return nil
      }
    }
  }

  /// Ends the subscription. From any thread.
  func close() {
    self.state.withLock { state in
      state.isClosed = true
      state.isOver = true
      state.batch = []
    }
  }

  /// The client was shut down: the consumer gets what was received, and then the end.
  func finish() { self.post(.finished(nil)) }

  private func take() -> Event? {
    let (event, credit, queue) = self.state.withLock { state -> (Event?, Int?, CreditQueue?) in
      let event = state.batch.popFirst()
      if event != nil {
        state.waiting -= 1
        state.consumed += 1
      }
      // Not a request for each event: half a window at a time, or before there is nothing to do.
      let isDue = event == nil || state.consumed >= max(state.window / 2, 1)
      guard isDue else { return (event, nil, nil) }
      return (event, self.giveCredit(&state), state.queue)
    }
    if let credit { queue?.add(credit) }
    return event
  }

  private func receive() async -> Delivery {
    if self.state.withLock({ $0.isOver }) { return .finished(nil) }
    return await withTaskCancellationHandler {
      while true {
        // An hour is as good as any other time: there is nothing to do then.
        let hour = self.clock.now() + .seconds(3600)
        if let delivery = await self.deliveries.receive(until: hour) { return delivery }
      }
    } onCancel: {
      self.deliveries.post(.finished(CancellationError()), isUrgent: true)
    }
  }

  // MARK: The running side

  var isClosed: Bool { self.state.withLock { $0.isClosed } }

  func post(_ delivery: Delivery, weight: Int = 0) {
    self.deliveries.post(delivery, weight: weight)
  }

  /// For events that were consumed, to be called inside the lock.
  ///
  /// - Returns: what is to be asked for; nil for nothing.
  func giveCredit(_ state: inout State) -> Int? {
    guard state.consumed > 0 else { return nil }
    let credit = state.credit.allow(state.consumed, at: self.clock.now())
    state.consumed = 0
    if state.credit.open > 0 { state.starvedSince = nil }
    return credit
  }

  /// - Returns: false when the call is to be ended.
  func received(_ view: FetchResponseView) async -> Bool {
    let now = self.clock.now()
    let (events, credit, provesToken) = self.state.withLock { state in
      state.isAnswered = true
      state.liveness.received(pending: view.pendingCredit, at: now)
      var credit = state.credit.received(
        eventCount: view.events.count, pending: view.pendingCredit, at: now)
      let start = state.position.start
      let events = state.position.received(view)
      let isNew = !events.isEmpty || state.position.start != start
      if isNew || state.hasLasted(at: now) { state.retries.succeeded() }
      state.waiting += events.count
      // What came again is nothing to the consumer.
      let repeated = view.events.count - events.count
      if repeated > 0, let more = state.credit.allow(repeated, at: now) {
        credit = (credit ?? 0) + more
      }
      state.starvedSince = state.credit.open > 0 ? nil : now
      return (events, credit, state.authorization.answered(at: now))
    }
    if let credit { self.state.withLock { $0.queue }?.add(credit) }
    if !events.isEmpty {
      self.post(
        .events(events.map { self.event($0, of: view) }), weight: view.bytes.count + 256)
    }
    let credentials = self.state.withLock { $0.usedCredentials }
    if provesToken, let credentials { await self.credentials.worked(credentials) }
    await self.deliveries.waitForRoom()
    self.state.withLock { $0.liveness.resumed(at: self.clock.now()) }
    return !self.isClosed
  }

  private func event(_ event: FetchResponseView.Event, of view: FetchResponseView) -> Event {
    Event(
      topic: self.topic, id: view.string(event.eventID), replayID: Array(view[event.replayID]),
      schemaID: view.string(event.schemaID), payload: Array(view[event.payload]),
      schemas: self.schemas)
  }
}
