internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// The subscription to one topic: begins where the runner says, and passes responses to the runner
/// once their schemas are there.
final class TopicStream<Transport: ClientTransport>: Subscriber {
  typealias Signal = SourceSignal<PubSubResponse>

  private struct State {
    var progress = StreamProgress()
    /// A schema that a response needs and that will not come.
    var missingSchema: MissingSchema?
    /// The last signal has been posted.
    var hasEnded = false
    /// A response waits for room in the queue.
    var wait: (task: Task<Void, Never>, since: ContinuousClock.Instant)?
  }

  let index: Int
  let options: PubSubSourceOptions
  let signals: SignalQueue<Signal>
  let loop: SubscriptionLoop<Transport>
  private let schemas: SchemaResolver<Transport>
  private let state = Lock(State())

  /// If a response finds no room for this long, the stream is closed on purpose: without
  /// credit, the service ends it 60 s after its last response (TheService.md#flow-control).
  private static var roomPatience: Duration { .seconds(30) }

  /// - Parameter maxEvents: the number of events that may be delivered to this topic; nil for no
  ///   limit.
  init(
    index: Int, topic: String, client: PubSubClient<Transport>,
    credentials: any CredentialsSource, schemas: SchemaResolver<Transport>,
    options: PubSubSourceOptions, maxEvents: Int?, signals: SignalQueue<Signal>,
    clock: StreamClock
  ) {
    self.index = index
    self.schemas = schemas
    self.options = options
    self.signals = signals
    self.loop = SubscriptionLoop(
      topic: topic, client: client, credentials: credentials, window: options.window,
      rule: .onArrival(limit: maxEvents), retry: options.retry,
      isIdentityError: options.isIdentityError, clock: clock)
  }

  /// Gives no more credit. The stream ends after the drain time, or at once if nothing can come.
  func stop() { self.loop.stop(draining: self.options.drainTime) }

  /// Allows `count` more events than the limit of the run, if it has one.
  func allow(_ count: Int) { self.loop.allow(count) }

  /// Runs until the stream has ended for good, which it reports with `ended`.
  func run() async { await self.run(self) }

  /// - Parameter subscriber: makes the calls; this stream passes on what they bring.
  func run(_ subscriber: some Subscriber) async {
    self.state.withLock { $0.hasEnded = false }
    guard await self.fetchMissingSchema() else { return }
    do throws(PersistentCall.Failure) {
      try await self.loop.run(subscriber)
      let missing = self.state.withLock { $0.missingSchema }
      self.end(self.loop.isStopping ? nil : missing?.failure)
    } catch {
      self.end(error.failure(options: self.options))
    }
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
      self.end(self.loop.isStopping ? nil : error)
      return false
    }
  }

  var isMissingSchema: Bool { self.state.withLock { $0.missingSchema != nil } }

  /// Posts the last signal, unless it has been posted.
  func end(_ failure: SourceFailure?) {
    let hasEnded = self.state.withLock { state in
      defer { state.hasEnded = true }
      return state.hasEnded
    }
    if !hasEnded { self.signals.post(.ended(topic: self.index, failure)) }
  }

  // MARK: Calls

  func start() async -> SubscriptionCall? {
    guard let start = await self.startPoint() else { return nil }
    return self.loop.subscribe(at: start.position, for: self)
  }

  /// Asks the runner where to begin. If the limit of the run is reached, a failed stream is reopened
  /// only once some of its events turn out to have been exported before (`allow`).
  func startPoint() async -> StartPoint? {
    await self.loop.wait { !self.loop.mayRequest }
    let answer = StartAnswer()
    self.signals.post(.opening(topic: self.index, reply: { answer.give($0) }))
    guard let start = await answer.wait() else { return nil }
    self.state.withLock { $0.progress.opened(at: start) }
    return start
  }

  /// Gives no more credit if a response waits for room for too long: takes what was requested, so
  /// that no event is delivered but not exported, and ends the stream.
  func tick(at now: ContinuousClock.Instant) -> SubscriptionEnding? {
    guard let wait = self.state.withLock({ $0.wait }), now - wait.since >= Self.roomPatience,
      !self.signals.hasRoom
    else { return nil }
    self.loop.holdBack(draining: self.options.drainTime)
    wait.task.cancel()
    return nil
  }

  func ended(_ ending: SubscriptionEnding) async -> SubscriptionStep {
    if self.loop.isStopping || self.isMissingSchema { return .end }
    if self.loop.isHeldBack {
      self.signals.post(.heldBack(topic: self.index))
      await self.loop.wait { !self.signals.hasRoom }
    }
    return .reopen
  }

  func note(_ notice: SubscriptionNotice) {
    switch notice {
    case .opened: self.signals.post(.opened(topic: self.index))
    case .delivered(let count):
      if self.options.allowance?.received(count) == false { self.stop() }
    case .worked: self.signals.post(.worked(topic: self.index))
    case .pausing(let error, let delay):
      let failure = error.failure(.unavailable, options: self.options)
      self.signals.post(.retrying(topic: self.index, failure, delay: delay))
    }
  }

  // MARK: Responses

  func received(_ view: FetchResponseView) async -> Bool {
    guard await self.passOn(view) else { return false }
    await self.waitForRoom()
    // A stream that is held back takes at most as much again as the queue may hold, so that memory
    // stays bounded.
    return !self.loop.isHeldBack || !self.signals.isOverfull
  }

  /// Passes a response to the runner once its schemas are there.
  ///
  /// - Returns: false if there will be no schema or nobody waits for it any longer.
  func passOn(_ view: FetchResponseView) async -> Bool {
    let now = self.loop.clock.now()
    // Each opening of a managed stream may cost an event, which a keepalive alone is not worth.
    let isNew =
      self.state.withLock { $0.progress.received(view) }
      && (self.options.managed == nil || !view.events.isEmpty)
    if self.loop.answered(isNew: isNew) { self.note(.worked) }
    guard let (response, byteCount) = await self.resolve(view) else { return false }
    self.signals.post(
      .response(topic: self.index, response, receivedAt: now),
      weight: self.options.weight(eventCount: view.events.count, byteCount: byteCount))
    return true
  }

  /// Waits until the runner takes responses again, or for too long: see `tick`.
  private func waitForRoom() async {
    guard !self.signals.hasRoom, !self.loop.isHeldBack else { return }
    let task = Task { await self.signals.waitForRoom() }
    self.state.withLock { $0.wait = (task, self.loop.clock.now()) }
    await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    self.state.withLock { $0.wait = nil }
  }

  /// Gets the schemas of a response. Later responses and the end of the topic wait, because the
  /// position stays before a response that is not passed on.
  ///
  /// - Returns: what to pass on, and its size; nil if there will be no schema or nobody waits for
  ///   it any longer.
  private func resolve(
    _ view: FetchResponseView
  ) async -> (response: PubSubResponse, byteCount: Int)? {
    do throws(MissingSchema) {
      let resolution = try await self.schemas.resolve(
        view, onFetch: { self.signals.post(.holding(topic: self.index)) },
        onRetry: { self.signals.post(.schemasFailed(topic: self.index, $0, delay: $1)) })
      try self.options.checkManaged(resolution.schemas.distinct, topic: self.loop.topic)
      try await self.schemas.prepare(resolution.schemas.distinct, options: self.options)
      return (
        PubSubResponse(view: view, schemas: resolution.schemas),
        view.bytes.count + resolution.newByteCount
      )
    } catch {
      if !Task.isCancelled { self.state.withLock { $0.missingSchema = error } }
      return nil
    }
  }
}

extension StartPoint {
  var position: Subscription.Position {
    switch self {
    case .earliest: .earliest
    case .latest: .latest
    // Only `ManagedSubscribe` begins there; see `ManagedStream`.
    case .managed: preconditionFailure("a plain subscription has no position of the service")
    case .after(let id): .after(id.bytes)
    }
  }
}
