internal import Pipeline
internal import PubSubAPI

/// Decides whether a managed stream continues at our own position.
///
/// The service begins a managed stream after the position that it has stored, which may be behind
/// ours (a commit was lost) or ahead of it (another client has committed; our state was restored
/// from a backup). Replay IDs cannot be compared, so a plain subscription after our position shows
/// the event to expect first. The managed stream counts only from that event: everything before it
/// is known, and no event can be missing in between. A value type without I/O.
struct ManagedJoin: Sendable {
  typealias Instant = ContinuousClock.Instant

  struct Event: Hashable, Sendable {
    var replayID: ReplayID
    var eventID: [UInt8]
  }

  enum OnResponse: Equatable {
    /// The stream continues at our position; all events except the given number of first ones are
    /// new.
    case handOn(droppingFirst: Int)
    /// The expected event is not known yet: keep the response and ask again.
    case hold
    /// Nothing in the response is new.
    case drop
    /// The expected event will not come.
    case apart
  }

  enum OnKeepalive: Equatable {
    /// There is nothing between our position and the keepalive's.
    case handOn
    /// The managed stream has delivered something that may be in between.
    case ignore
  }

  /// Why the stream does not continue at our position.
  enum Cause: Sendable {
    /// It does not deliver the expected event.
    case elsewhere
    /// It delivered more unproven events than are kept.
    case flood
    /// It delivers events that do not exist according to the plain subscription.
    case contradiction
  }

  /// How long the managed stream may be silent once the expected event is known, and how much later
  /// than the managed stream the plain subscription may deliver an event.
  static let patience = Duration.seconds(10)

  /// The maximum number of unproven events that are kept. One event at a time is requested, so a
  /// service that sends more than this, or more than may wait for the runner, ignores the credit.
  static let maxHeldEvents = FetchCredit.maxWindow

  /// `joined` and `apart` are final.
  private enum Phase { case open, joined, apart }

  private var phase: Phase
  /// The first event after our position.
  private var expected: Event?
  private var lastProgress: Instant?
  private var droppedCount = 0
  /// Responses that wait until the expected event is known.
  private var held: [FetchResponseView] = []
  private var heldByteCount = 0
  /// The first event that the managed stream delivered, where it begins.
  private(set) var first: Event?
  /// When the first event arrived that may follow our position, before the expected event was
  /// known.
  private var openSince: Instant?
  private(set) var cause = Cause.elsewhere
  private let start: StartPoint

  /// - Parameter start: our position; `managed` if we have none, in which case the service's
  ///   counts.
  init(at start: StartPoint) {
    self.phase = start == .managed ? .joined : .open
    self.start = start
  }

  /// Sets the first event after our position, from the plain subscription.
  mutating func expect(_ event: Event, at now: Instant) {
    self.expected = event
    self.lastProgress = now
  }

  var expects: Bool { self.expected != nil }

  /// Whether the stream delivers new events, or will, because it is still before the expected one.
  var isUseful: Bool { self.counts || !self.isApart && self.droppedCount > 0 }

  /// Whether the stream continues at our position. Keepalives of the managed stream count only
  /// then.
  var counts: Bool { self.phase == .joined }

  /// Whether nothing from this stream is passed on, whatever it delivers.
  var isApart: Bool { self.phase == .apart }

  /// Whether an event has come that may have to be exported while the plain subscription has
  /// delivered none yet, so that its silence is not the end of the topic.
  var awaitsEvent: Bool { self.openSince != nil && self.expected == nil && !self.counts }

  var heldEventCount: Int { self.held.reduce(0) { $0 + $1.events.count } }

  /// The responses kept so far, to be judged again now that the expected event is known.
  mutating func takeHeld() -> [FetchResponseView] {
    defer { self.held.removeAll() }
    return self.held
  }

  /// Judges a response with events.
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
      // Only a veto, never proof that an event is known.
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

  /// Whether an event may come after our position. A service that is behind us does not make a run
  /// wait, so a lower number counts here. If that is misleading, a run ends early, and the next one
  /// continues.
  private func mayFollow(_ replayID: ReplayID) -> Bool {
    switch self.start {
    case .after(let position):
      replayID != position && !replayID.isCertainlyBefore(position)
    case .earliest: true
    // Only the plain subscription knows where that is.
    case .latest, .managed: false
    }
  }

  /// Handles a keepalive of the plain subscription, which has delivered nothing so far.
  ///
  /// The keepalive must not move our position past an event that the managed stream has delivered.
  /// Soon after that event, the plain stream may just be late. Later, the two contradict each
  /// other, and `Subscribe` decides: it continues from our position.
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

  /// Gives up the managed stream if the plain subscription delivers the expected event and the
  /// managed stream does not.
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
