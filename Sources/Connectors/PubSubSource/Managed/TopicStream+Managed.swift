internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// The state of a topic's managed subscription.
struct ManagedState: Sendable {
  var commits = ManagedCommits()
  var join = ManagedJoin(at: .managed)
  /// Held responses are being judged, so later ones wait.
  var isHandingOnHeld = false
  /// The service has answered the call, so the subscription is ours.
  var isAnswered = false
  /// The wait for the subscription since the first of consecutive refusals; nil unless it was
  /// refused.
  var wait: SubscriptionWait?
  var isOpen = false
  /// The liveness of the plain subscription that looks for the first event after our position.
  var probe: Liveness?
  /// Nothing more is passed on.
  var isCut = false
  /// Set while events are read with `Subscribe`, until the managed stream can take over.
  var detour: Detour?
  var detourCount = 0
  /// The runner has ended, so what is durable now is final.
  var isFinishing = false
  /// The last signal has been posted.
  var hasEnded = false
  /// The stream has ended for good.
  var isDone = false

  struct Detour: Sendable {
    /// Where the managed stream began; nil if it delivered no event.
    var until: ManagedJoin.Event?
    /// Why the managed stream was left.
    var cause: ManagedJoin.Cause
    /// The plain stream has reached that place.
    var isOver = false
  }

  /// The state for the next stream: what is known about the subscription, without its last call.
  var reopened: Self {
    var next = Self()
    (next.commits, next.detourCount, next.wait) = (self.commits, self.detourCount, self.wait)
    (next.isFinishing, next.hasEnded) = (self.isFinishing, self.hasEnded)
    next.commits.opened()
    return next
  }
}

/// Delivery by `ManagedSubscribe`: the service keeps a position, but our own decides.
extension TopicStream {
  /// The maximum wait for the last commit, and then for the end of the call.
  private static var closingTime: Duration { .seconds(5) }
  /// The plain subscription is opened after this time, even if the service has not answered yet.
  private static var answerTime: Duration { .seconds(2) }
  /// The same after an attempt that was refused because another client had the subscription: the
  /// next answer is likely to be another refusal.
  private static var likelyRefusalTime: Duration { .seconds(30) }

  private enum Part: Sendable {
    case call(Ending)
    case supervision(Ending)
    case late
  }

  func becameDurable(_ replayID: ReplayID) {
    self.state.withLock { $0.managed.commits.becameDurable(replayID) }
  }

  /// Lets the stream commit what is durable and close its call.
  func finish() { self.state.withLock { $0.managed.isFinishing = true } }

  var isDone: Bool { self.state.withLock { $0.managed.isDone } }

  var managedProgress: ManagedProgress? {
    guard let record = self.options.managed else { return nil }
    return self.state.withLock { state in
      let commits = state.managed.commits
      return ManagedProgress(
        subscription: "\(record)", durable: commits.durable, stored: commits.stored,
        confirmedCount: commits.confirmedCount, failedCount: commits.failedCount,
        detourCount: state.managed.detourCount)
    }
  }

  /// The managed subscription, unless `Subscribe` has to read on from here.
  func managedRecord(at start: StartPoint) -> ManagedSubscription.Record? {
    guard let record = self.options.managed else { return nil }
    let isDetour = self.state.withLock { $0.managed.detour != nil }
    return isDetour && start != .managed ? nil : record
  }

  /// Opens the managed stream. If we have a position, a plain subscription after it proves that the
  /// managed stream continues there.
  func openManaged(
    _ record: ManagedSubscription.Record, at start: StartPoint, _ credentials: Credentials
  ) async -> Ending {
    let requests = ManagedRequestQueue()
    let needsProof = start != .managed
    let credit = self.begin(window: needsProof ? 1 : nil) { requests.add($0) }
    guard credit > 0 else { return .stopped }
    self.state.withLock { state in
      state.managed = state.managed.reopened
      state.managed.join = ManagedJoin(at: start)
      state.managed.isOpen = true
    }
    let subscription = ManagedSubscription(record: record, topic: self.topic, credit: credit)
    let ending = await withTaskGroup(of: Part.self) { group in
      group.addTask { .call(await self.call(subscription, requests, credentials, needsProof)) }
      group.addTask {
        .supervision(await self.supervise(needsProof ? start : nil, credentials, requests))
      }
      let ending: Ending
      switch await group.next() ?? .late {
      case .call(let reason):
        group.cancelAll()
        return reason
      case .supervision(let reason): ending = reason
      case .late: preconditionFailure("two tasks were added")
      }
      if case .stopped = ending { await self.waitForLastPosition() }
      await self.close(requests)
      group.addTask {
        await self.clock.sleep(self.clock.now() + Self.closingTime)
        return .late
      }
      _ = await group.next()
      group.cancelAll()
      return ending
    }
    let held = self.state.withLock { $0.managed.join.takeHeld() }.reduce(0) { $0 + $1.events.count }
    if held > 0 { self.signals.post(.passedOver(topic: self.index, eventCount: held)) }
    return ending
  }

  private func call(
    _ subscription: ManagedSubscription, _ requests: ManagedRequestQueue,
    _ credentials: Credentials, _ needsProof: Bool
  ) async -> Ending {
    defer { self.state.withLock { $0.managed.isOpen = false } }
    let operation = "ManagedSubscribe to \(subscription.record)"
    do {
      try await self.client.managedSubscribe(
        subscription, credentials: credentials, requests: requests,
        onOpen: { if !needsProof { self.signals.post(.opened(topic: self.index)) } },
        onResponse: {
          await self.handManaged(on: $0, requests, credentials)
          return true
        })
    } catch {
      return .call(PubSubError(error, operation: operation))
    }
    return .call(
      PubSubError(.endOfStream, status: .ok, "\(operation): the service ended the stream"))
  }

  // MARK: Responses

  private func handManaged(
    on view: FetchResponseView, _ requests: ManagedRequestQueue, _ credentials: Credentials
  ) async {
    let now = self.clock.now()
    self.count(delivered: view.events.count)
    self.state.withLock { ($0.managed.isAnswered, $0.managed.wait) = (true, nil) }
    if let answer = view.commitAnswer {
      self.note(answer, of: view)
      // A response with only an answer says nothing about the stream's place and credit.
      if view.events.isEmpty { return self.state.withLock { $0.liveness.heard(at: now) } }
    }
    while !Task.isCancelled {
      guard await self.judge(view, isHeld: false, requests, credentials) else {
        await self.pause(.milliseconds(10))
        continue
      }
      return self.widen(requests)
    }
  }

  /// Passes on what is proven to follow our position.
  ///
  /// - Parameter isHeld: the response has waited for proof.
  /// - Returns: false if a response that has waited longer comes first.
  private func judge(
    _ view: FetchResponseView, isHeld: Bool, _ requests: ManagedRequestQueue,
    _ credentials: Credentials
  ) async -> Bool {
    let now = self.clock.now()
    let (isNext, answer) = self.state.withLock { state -> (Bool, ManagedJoin.OnResponse?) in
      if state.managed.isHandingOnHeld, !isHeld { return (false, nil) }
      if state.managed.isCut { return (true, nil) }
      if view.events.isEmpty, !state.managed.join.counts {
        state.heard(view, at: now)
        return (true, nil)
      }
      if view.events.isEmpty { return (true, .handOn(droppingFirst: 0)) }
      let answer = state.managed.join.received(view, at: now)
      switch answer {
      case .handOn, .apart: break
      case .hold: state.heard(view, at: now)
      case .drop:
        state.heard(view, at: now)
        if let credit = state.credit.received(
          eventCount: view.events.count, pending: view.pendingCredit, at: now)
        {
          requests.add(credit)
        }
      }
      return (true, answer)
    }
    switch answer {
    case .handOn(let count):
      self.passOver(count)
      let goesOn = await self.hand(
        on: view.dropFirstEvents(count), delivered: view.events.count, { requests.add($0) },
        credentials)
      if !goesOn { self.state.withLock { $0.managed.isCut = true } }
    case .drop: self.passOver(view.events.count)
    case .apart:
      self.signals.post(.passedOver(topic: self.index, eventCount: view.events.count))
      self.postHolding()
    case .hold: self.postHolding()
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
      if state.managed.join.awaitsEvent { self.signals.post(.holding(topic: self.index)) }
    }
  }

  /// Reports events that count against the org's allowance and are not passed on.
  private func passOver(_ count: Int) {
    guard count > 0 else { return }
    self.signals.post(.passedOver(topic: self.index, eventCount: count))
    if self.options.maxDelivered == nil { self.allow(count) }
  }

  /// Requests more events once the stream is known to be useful; until then, one at a time.
  private func widen(_ requests: ManagedRequestQueue) {
    let credit = self.state.withLock { state -> Int? in
      guard state.managed.join.isUseful, !state.managed.isCut else { return nil }
      return state.credit.widen(to: state.window, at: self.clock.now())
    }
    if let credit { requests.add(credit) }
  }

  private func note(_ answer: FetchResponseView.CommitAnswer, of view: FetchResponseView) {
    let id = view.string(answer.requestID)
    let stored = answer.replayID.isEmpty ? nil : ReplayID(Array(view[answer.replayID]))
    let result = self.state.withLock {
      $0.managed.commits.answered(id: id, hasFailed: answer.failure != nil, stored: stored)
    }
    switch result {
    case .confirmed(let replayID): self.options.onManaged(.confirmed(replayID))
    case .failed(let replayID):
      let text = answer.failure.map { view.string($0.message) } ?? ""
      self.options.onManaged(.commitFailed(replayID, reason: text))
    case .misplaced(let stored, let asked):
      self.options.onManaged(.misplaced(stored, asked: asked))
    case .unknown: break
    }
  }

  /// The record in the org, not the pipeline, determines the topic of a managed stream. Events of
  /// another topic must not be exported under the pipeline's topic. The objects of a channel are
  /// unknown.
  func checkManagedTopic(_ schemas: [ResolvedSchema]) throws(MissingSchema) {
    guard let record = self.options.managed, !TopicName.isChannel(self.topic) else { return }
    let expected = TopicName.entity(self.topic)
    for schema in schemas {
      guard let found = schema.entity, found.lowercased() != expected.lowercased() else { continue }
      throw MissingSchema(
        id: String(decoding: schema.id, as: UTF8.self),
        failure: SourceFailure(
          .configuration, reason: "managed_topic",
          "\(self.topic): the managed subscription brings events of '\(found.prefix(80))', not of "
            + "'\(expected)'; check source.managed (\(record)) and the topic of its record in the org"
        ))
    }
  }

  // MARK: Proof

  /// - Parameter start: our position, to be proven; nil if the service's position counts.
  /// - Returns: why the call has to be closed.
  private func supervise(
    _ start: StartPoint?, _ credentials: Credentials, _ requests: ManagedRequestQueue
  ) async -> Ending {
    await withTaskGroup(of: Ending?.self) { group in
      if let start {
        group.addTask { await self.probe(start, credentials, requests) }
      }
      group.addTask { await self.watchManaged(requests) }
      defer { group.cancelAll() }
      for await ending in group {
        if let ending { return ending }
      }
      return .stopped
    }
  }

  /// Learns the first event after our position from `Subscribe`.
  ///
  /// - Returns: nil once that is known.
  private func probe(
    _ start: StartPoint, _ credentials: Credentials, _ requests: ManagedRequestQueue
  ) async -> Ending? {
    // A refused subscription must not cost an event at every attempt.
    let isWaiting = self.state.withLock { $0.managed.wait != nil }
    let latest = self.clock.now() + (isWaiting ? Self.likelyRefusalTime : Self.answerTime)
    while !self.state.withLock({ $0.managed.isAnswered }), self.clock.now() < latest {
      if Task.isCancelled { return nil }
      await self.pause(.milliseconds(50))
    }
    let queue = CreditQueue()
    self.state.withLock { $0.managed.probe = Liveness(openedAt: self.clock.now()) }
    do {
      try await self.client.subscribe(
        Subscription(topic: self.topic, position: start.position, credit: 1),
        credentials: credentials, credit: queue,
        onOpen: {
          self.signals.post(.opened(topic: self.index))
          self.postHolding()
        },
        onResponse: { await self.handProbe(on: $0, requests, credentials) })
    } catch {
      return .call(PubSubError(error, operation: "Subscribe to \(self.topic)"))
    }
    let isKnown = self.state.withLock { state in
      state.managed.probe = nil
      return state.managed.join.expects
    }
    if isKnown { return nil }
    return .call(
      PubSubError(
        .endOfStream, status: .ok, "Subscribe to \(self.topic): the service ended the stream"))
  }

  /// - Returns: true until an event arrives. Keepalives of the plain subscription are passed on,
  ///   because nothing is between our position and theirs, unless the managed stream has delivered
  ///   something else.
  private func handProbe(
    on view: FetchResponseView, _ requests: ManagedRequestQueue, _ credentials: Credentials
  ) async -> Bool {
    let now = self.clock.now()
    guard let first = view.events.first else {
      let (answer, hasWorked) = self.state.withLock { state in
        state.managed.probe?.received(pending: view.pendingCredit, at: now)
        state.managed.probe?.resumed(at: now)
        let answer = state.managed.join.receivedKeepalive(at: now)
        guard answer == .handOn else { return (answer, false) }
        _ = state.progress.received(view)
        return (answer, state.isUseful(at: now) && state.worked())
      }
      guard answer == .handOn else { return true }
      if hasWorked { self.signals.post(.worked(topic: self.index)) }
      guard let (response, byteCount) = await self.resolve(view) else { return false }
      self.signals.post(
        .response(topic: self.index, response, receivedAt: now),
        weight: self.options.weight(eventCount: 0, byteCount: byteCount))
      self.postHolding()
      return true
    }
    self.count(delivered: view.events.count)
    self.signals.post(.passedOver(topic: self.index, eventCount: view.events.count))
    // There is something to export, so from now on silence does not mean the end of the topic.
    self.signals.post(.holding(topic: self.index))
    let held = self.state.withLock { state in
      state.managed.probe = nil
      state.managed.join.expect(ManagedJoin.Event(first, of: view), at: now)
      state.managed.isHandingOnHeld = true
      return state.managed.join.takeHeld()
    }
    for response in held { _ = await self.judge(response, isHeld: true, requests, credentials) }
    self.state.withLock { $0.managed.isHandingOnHeld = false }
    self.widen(requests)
    return false
  }

  /// Sends commits when they are due.
  private func watchManaged(_ requests: ManagedRequestQueue) async -> Ending {
    while !Task.isCancelled {
      if let ending = self.look() { return ending }
      let now = self.clock.now()
      let (ending, commit) = self.state.withLock { state -> (Ending?, ManagedCommit?) in
        if state.managed.join.check(at: now) {
          state.managed.detour = .init(
            until: state.managed.join.first, cause: state.managed.join.cause)
          state.managed.detourCount += 1
          return (.apart, nil)
        }
        if state.missingSchema != nil { return (.heldBack, nil) }
        if state.managed.isCut || state.credit.isStopped && state.credit.open == 0 {
          return (state.stopAt == nil ? .heldBack : .stopped, nil)
        }
        if case .idle? = state.managed.probe?.check(at: now) { return (.idle, nil) }
        // Before the proof, commit only to keep the call open: if the service is ahead, a commit
        // would move it back, and it would send again what `Subscribe` reads.
        let mayCommit =
          state.managed.join.counts || now - state.openedAt >= ManagedCommits.renewal
        return (nil, mayCommit ? state.managed.commits.due(at: now) : nil)
      }
      if let commit { requests.add(commit) }
      if let ending { return ending }
      await self.pause(.milliseconds(self.isStopping ? 50 : 250))
    }
    return .stopped
  }

  private func pause(_ duration: Duration) async {
    await self.clock.sleep(ProcessClock.nextLook(from: self.clock.now(), after: duration))
  }

  // MARK: Detours

  /// Why `Subscribe` takes over.
  func detourFailure(from start: StartPoint) -> SourceFailure {
    let record = self.options.managed.map { "\($0)" } ?? ""
    let detour = self.state.withLock { $0.managed.detour }
    let place =
      if case .after(let replayID) = start { "after replay ID \(replayID)" } else {
        "at the earliest event"
      }
    return SourceFailure(
      .unavailable, reason: "managed_position",
      "managed subscription \(record) of \(self.topic): the stored position is \(place), but the "
        + "service's stream "
        + self.description(of: detour)
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

  /// Whether the plain stream, of which a response was passed on, has caught up with the managed
  /// stream or reached the end of the topic.
  func hasEndedDetour(with view: FetchResponseView) -> Bool {
    self.state.withLock { state in
      guard let detour = state.managed.detour else { return false }
      guard view.isKeepalive || detour.until.map(view.contains) == true else { return false }
      state.managed.detour?.isOver = true
      return true
    }
  }

  /// - Returns: whether a detour has now ended.
  func endDetour() -> Bool {
    self.state.withLock { state in
      guard state.managed.detour?.isOver == true else { return false }
      state.managed.detour = nil
      return true
    }
  }

  // MARK: The end

  /// Commits the last position of a run that has read with `Subscribe` because the managed stream
  /// delivered nothing. Until a position is committed, a subscription may begin at the end of the
  /// topic, and each run would find it silent. A managed stream that has delivered a later event is
  /// ahead and is left there.
  ///
  /// - Returns: false if there is nothing to commit.
  func commitAfterDetour() async -> Bool {
    let isSilent = self.state.withLock { state in
      guard let detour = state.managed.detour else { return false }
      return detour.until == nil && detour.cause == .elsewhere
    }
    guard let record = self.options.managed, isSilent else { return false }
    self.end(nil)
    while self.state.withLock({ !$0.managed.isFinishing }), !Task.isCancelled {
      await self.pause(.milliseconds(50))
    }
    // The only error is that of a login, after which there is nothing to commit with.
    guard !Task.isCancelled, let credentials = try? await self.credentials.credentials() else {
      return true
    }
    self.state.withLock { state in
      state.managed = state.managed.reopened
      (state.managed.isOpen, state.managed.isCut) = (true, true)
    }
    let requests = ManagedRequestQueue()
    let subscription = ManagedSubscription(record: record, topic: self.topic, credit: 1)
    await withTaskGroup { group in
      group.addTask { _ = await self.call(subscription, requests, credentials, true) }
      await self.close(requests)
      group.addTask { await self.clock.sleep(self.clock.now() + Self.closingTime) }
      _ = await group.next()
      group.cancelAll()
    }
    return true
  }

  /// Waits after the end of the topic until the runner has committed the last events.
  private func waitForLastPosition() async {
    self.state.withLock { $0.managed.isCut = true }
    self.end(nil)
    while self.state.withLock({ !$0.managed.isFinishing && $0.managed.isOpen }), !Task.isCancelled {
      await self.pause(.milliseconds(50))
    }
  }

  /// Commits what is durable, waits for the answer, and closes the request side, after which the
  /// service frees the subscription at once.
  private func close(_ requests: ManagedRequestQueue) async {
    self.state.withLock { $0.managed.isCut = true }
    let deadline = self.clock.now() + Self.closingTime
    while case let now = self.clock.now(), now < deadline, !Task.isCancelled {
      let (commit, isDone) = self.state.withLock { state in
        if state.managed.join.isApart { return (nil as ManagedCommit?, true) }
        let commit = state.managed.commits.due(at: now, isLast: true)
        return (commit, state.managed.commits.isSettled || !state.managed.isOpen)
      }
      if let commit { requests.add(commit) }
      if isDone { break }
      await self.pause(.milliseconds(20))
    }
    requests.finish()
  }
}
