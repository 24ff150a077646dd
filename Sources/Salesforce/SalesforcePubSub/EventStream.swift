internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import PubSubAPI

/// One subscription, between the task that runs it and the task that consumes its events.
///
/// Credit follows the consumer: requested events and received events that were not consumed are
/// together never more than the window. After a long time without credit, the call is closed on
/// purpose before the service does it, and opened again when the consumer has taken all events.
final class EventStream<Transport: ClientTransport>: Subscriber {
  enum Delivery: Sendable {
    case events([Event])
    /// Nothing follows.
    case finished((any Error)?)
  }

  struct State {
    var position: StreamPosition
    /// The number of events that the current call keeps outstanding.
    var window = 1
    /// When credit ran out, so that nothing more may come; nil while some is open.
    var starvedSince: ContinuousClock.Instant?
    /// The number of events that were received and not consumed.
    var waiting = 0
    /// The number of events that were consumed and not yet requested again.
    var consumed = 0
    /// The events that the consumer takes next.
    var batch: ArraySlice<Event> = []
    /// The consumer has learned of the end.
    var isOver = false
  }

  let state: Lock<State>
  private let loop: SubscriptionLoop<Transport>
  private let schemas: EventSchemas
  private let onRetry: @Sendable (PubSubError, Duration) -> Void
  /// Responses for the consumer, weighed by their bytes.
  private let deliveries = SignalQueue<Delivery>(limit: 8 << 20)

  /// After so long without credit the call is closed on purpose: the service ends it 60 s after its
  /// last response (TheService.md#flow-control).
  private static var creditPatience: Duration { .seconds(30) }

  /// - Parameter window: events outstanding, clamped to 1…100.
  init(
    topic: String, start: Subscription.Position, window: Int, client: PubSubClient<Transport>,
    credentials: any CredentialsSource, schemas: EventSchemas, retry: RetrySchedule,
    isIdentityError: @escaping @Sendable (any Error) -> Bool,
    onRetry: @escaping @Sendable (PubSubError, Duration) -> Void = { _, _ in },
    clock: StreamClock = StreamClock(ProcessClock())
  ) {
    self.schemas = schemas
    self.onRetry = onRetry
    self.state = Lock(State(position: StreamPosition(start)))
    self.loop = SubscriptionLoop(
      topic: topic, client: client, credentials: credentials, window: window,
      rule: .onConsumption, retry: retry, isIdentityError: isIdentityError, clock: clock)
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
    self.loop.stop(draining: .zero)
    self.state.withLock { state in
      state.isOver = true
      state.batch = []
    }
  }

  /// The client was shut down: the consumer gets what was received, and then the end.
  func finish() { self.deliveries.post(.finished(nil)) }

  private func take() -> Event? {
    self.state.withLock { state in
      let event = state.batch.popFirst()
      if event != nil {
        state.waiting -= 1
        state.consumed += 1
      }
      // Not a request for each event: half a window at a time, or before there is nothing to do.
      if event == nil || state.consumed >= max(state.window / 2, 1) { self.giveCredit(&state) }
      return event
    }
  }

  private func receive() async -> Delivery {
    if self.state.withLock({ $0.isOver }) { return .finished(nil) }
    return await withTaskCancellationHandler {
      while true {
        // An hour is as good as any other time: there is nothing to do then.
        let hour = self.loop.clock.now() + .seconds(3600)
        if let delivery = await self.deliveries.receive(until: hour) { return delivery }
      }
    } onCancel: {
      self.deliveries.post(.finished(CancellationError()), isUrgent: true)
    }
  }

  /// Requests as many events as were consumed.
  ///
  /// - Returns: false if none were.
  @discardableResult private func giveCredit(_ state: inout State) -> Bool {
    guard state.consumed > 0 else { return false }
    self.loop.allow(state.consumed)
    state.consumed = 0
    if self.loop.openCredit > 0 { state.starvedSince = nil }
    return true
  }

  // MARK: The running side

  /// Keeps the subscription until the consumer closes it, the task is cancelled or it fails for good,
  /// and tells the consumer.
  func run() async {
    do throws(PersistentCall.Failure) {
      try await self.loop.run(self)
      self.finish()
    } catch {
      self.deliveries.post(.finished(error.reported))
    }
  }

  /// A first request asks for at least one event, so the consumer has to take what was received.
  func start() async -> SubscriptionCall? {
    await self.loop.wait { self.state.withLock { $0.waiting > 0 } }
    if self.loop.isStopping || Task.isCancelled { return nil }
    let position = self.state.withLock { state in
      state.window = self.loop.window
      state.starvedSince = nil
      state.consumed = 0
      return state.position.start
    }
    return self.loop.subscribe(at: position, for: self)
  }

  func received(_ view: FetchResponseView) async -> Bool {
    let (events, isNew) = self.state.withLock { state in
      let start = state.position.start
      let events = state.position.received(view)
      state.waiting += events.count
      // The consumer does not see events that came again.
      let repeated = view.events.count - events.count
      if repeated > 0 { self.loop.allow(repeated) }
      state.starvedSince = self.loop.openCredit > 0 ? nil : self.loop.clock.now()
      return (events, !events.isEmpty || state.position.start != start)
    }
    _ = self.loop.answered(isNew: isNew)
    if !events.isEmpty {
      self.deliveries.post(
        .events(events.map { self.event($0, of: view) }), weight: view.bytes.count + 256)
    }
    await self.deliveries.waitForRoom()
    return !self.loop.isStopping
  }

  /// Gives a slow consumer less than half a window at a time. Closes the call of one that takes
  /// nothing.
  func tick(at now: ContinuousClock.Instant) -> SubscriptionEnding? {
    self.state.withLock { state in
      guard let since = state.starvedSince, now - since >= Self.creditPatience else { return nil }
      return self.giveCredit(&state) ? nil : .closed
    }
  }

  func ended(_ ending: SubscriptionEnding) async -> SubscriptionStep {
    if self.loop.isStopping { return .end }
    self.state.withLock { $0.position.interrupted() }
    return .reopen
  }

  func note(_ notice: SubscriptionNotice) {
    if case .pausing(let error, let delay) = notice { self.onRetry(error, delay) }
  }

  private func event(_ event: FetchResponseView.Event, of view: FetchResponseView) -> Event {
    Event(
      topic: self.loop.topic, id: view.string(event.eventID), replayID: Array(view[event.replayID]),
      schemaID: view.string(event.schemaID), payload: Array(view[event.payload]),
      schemas: self.schemas)
  }
}
