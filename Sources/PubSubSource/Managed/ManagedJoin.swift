internal import Pipeline
internal import PubSubAPI

/// Whether a managed stream goes on where our own position is.
///
/// The service begins a managed stream after the position that it has stored, which may be behind
/// ours (a commit was lost) or ahead of it (another client has committed; our state was restored from
/// a backup). Replay IDs cannot be compared, so a plain subscription after our position tells the
/// first event that has to come, and the managed stream counts only from that event on: what it
/// brings before is known, and nothing can lie between. A value without I/O.
struct ManagedJoin: Sendable {
  typealias Instant = ContinuousClock.Instant

  struct Event: Hashable, Sendable {
    var replayID: ReplayID
    var eventID: [UInt8]
  }

  enum OnResponse: Equatable {
    /// The stream goes on at our position: all but so many of the first events are new.
    case handOn(droppingFirst: Int)
    /// The event that has to come is not known yet: keep the response and ask again.
    case hold
    /// Nothing in it is new.
    case drop
    /// The event that has to come will not.
    case apart
  }

  enum OnKeepalive: Equatable {
    /// Nothing lies between our position and that of the keepalive.
    case handOn
    /// The managed stream has brought what may lie there.
    case ignore
  }

  /// Why the stream is apart.
  enum Cause: Sendable {
    /// It does not bring the event that has to come.
    case elsewhere
    /// More came without proof than is kept.
    case flood
    /// It brings what the plain subscription says is not there.
    case contradiction
  }

  /// How long the managed stream may be silent when the event that has to come is known, and how much
  /// later than the managed stream the plain subscription may bring an event.
  static let patience = Duration.seconds(10)

  /// Events that are kept without proof. One at a time is asked for, so that a service that sends
  /// more than this, or more than may wait for the runner, ignores the credit.
  static let maxHeldEvents = FetchCredit.maxWindow

  /// The two verdicts are final.
  private enum Phase { case open, joined, apart }

  private var phase: Phase
  /// The first event after our position.
  private var expected: Event?
  private var lastProgress: Instant?
  private var droppedCount = 0
  /// Responses that wait for the event that has to come.
  private var held: [FetchResponseView] = []
  private var heldByteCount = 0
  /// The first event that the managed stream brought; where it begins.
  private(set) var first: Event?
  /// When the first event came that may follow our position, before the one that has to come was known.
  private var openSince: Instant?
  private(set) var cause = Cause.elsewhere
  private let start: StartPoint

  /// - Parameter start: our position; `managed` if we have none, so that the service's counts.
  init(at start: StartPoint) {
    self.phase = start == .managed ? .joined : .open
    self.start = start
  }

  /// The plain subscription has brought the first event after our position.
  mutating func expect(_ event: Event, at now: Instant) {
    self.expected = event
    self.lastProgress = now
  }

  var expects: Bool { self.expected != nil }

  /// The stream brings what is new, or will: its events come before the one that has to come.
  var isUseful: Bool { self.counts || !self.isApart && self.droppedCount > 0 }

  /// Keepalives of the managed stream count only after this.
  var counts: Bool { self.phase == .joined }

  /// Nothing of this stream is handed on, whatever it brings.
  var isApart: Bool { self.phase == .apart }

  /// An event has come that may have to be exported, and the plain subscription has brought none yet: its
  /// silence is not the end of the topic.
  var awaitsEvent: Bool { self.openSince != nil && self.expected == nil && !self.counts }

  var heldEventCount: Int { self.held.reduce(0) { $0 + $1.events.count } }

  /// The responses kept so far, to be judged again now that the event that has to come is known.
  mutating func takeHeld() -> [FetchResponseView] {
    defer { self.held.removeAll() }
    return self.held
  }

  /// A response with events.
  mutating func received(_ view: FetchResponseView, at now: Instant) -> OnResponse {
    switch self.phase {
    case .joined: return .handOn(droppingFirst: 0)
    case .apart: return .apart
    case .open: break
    }
    if self.first == nil { self.first = view.events.first.map { Event($0, of: view) } }
    guard let expected else { return self.hold(view, at: now) }
    self.lastProgress = now
    for (index, event) in view.events.enumerated() {
      if expected.replayID.bytes.elementsEqual(view[event.replayID]),
        expected.eventID.elementsEqual(view[event.eventID])
      {
        self.phase = .joined
        return .handOn(droppingFirst: index)
      }
      // A veto: never taken as proof that an event is known.
      if expected.replayID.isCertainlyBefore(ReplayID(Array(view[event.replayID]))) {
        return self.reject()
      }
    }
    self.droppedCount += view.events.count
    return self.droppedCount > StreamCursor.passingLimit ? self.reject() : .drop
  }

  private mutating func hold(_ view: FetchResponseView, at now: Instant) -> OnResponse {
    if self.openSince == nil,
      view.events.contains(where: { self.mayFollow(ReplayID(Array(view[$0.replayID]))) })
    {
      self.openSince = now
    }
    self.heldByteCount += view.bytes.count
    guard self.heldEventCount + view.events.count <= Self.maxHeldEvents,
      self.heldByteCount <= PubSubSourceOptions.readAheadBytes
    else {
      return self.reject(.flood)
    }
    self.held.append(view)
    return .hold
  }

  /// Whether an event may come after our position. A service that is behind us is no reason to wait, so
  /// that a lower number counts here: if it misleads, a run ends early, and the next one goes on.
  private func mayFollow(_ replayID: ReplayID) -> Bool {
    switch self.start {
    case .after(let position):
      replayID != position && !replayID.isCertainlyBefore(position)
    case .earliest: true
    // Where that is, the plain subscription alone knows.
    case .latest, .managed: false
    }
  }

  /// The plain subscription has brought nothing so far.
  ///
  /// Its keepalive must not move our position past an event that the managed stream has brought. Soon
  /// after that event, the plain stream may only be late. Later, the two contradict each other, and
  /// `Subscribe` decides: it reads on from our position.
  mutating func receivedKeepalive(at now: Instant) -> OnKeepalive {
    guard self.phase == .open else { return .ignore }
    guard let openSince = self.openSince else { return .handOn }
    if now - openSince >= Self.patience { _ = self.reject(.contradiction) }
    return .ignore
  }

  private mutating func reject(_ cause: Cause = .elsewhere) -> OnResponse {
    self.phase = .apart
    self.cause = cause
    return .apart
  }

  /// The event that has to come is there for others, and the managed stream does not bring it: from
  /// then on it is apart.
  ///
  /// - Returns: `isApart`.
  mutating func check(at now: Instant) -> Bool {
    if self.phase == .open, self.expected != nil, let lastProgress,
      now - lastProgress >= Self.patience
    {
      self.phase = .apart
    }
    return self.isApart
  }
}

extension ManagedJoin.Event {
  init(_ event: FetchResponseView.Event, of view: FetchResponseView) {
    self.replayID = ReplayID(Array(view[event.replayID]))
    self.eventID = Array(view[event.eventID])
  }
}

extension FetchResponseView {
  func contains(_ event: ManagedJoin.Event) -> Bool {
    self.events.contains {
      event.replayID.bytes.elementsEqual(self[$0.replayID])
        && event.eventID.elementsEqual(self[$0.eventID])
    }
  }
}
