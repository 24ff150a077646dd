/// Decides when the stream of one topic has been read up to now (Architecture.md#caught-up).
///
/// A value type without I/O that observes responses and time. The stream has no end mark, so these
/// are rules under which ending loses nothing: the position does not move, and the next run resumes
/// from it.
package struct CaughtUp: Sendable {
  package enum Rule: String, Sendable {
    /// An empty response came more than `quiet` after the last event.
    case keepalive
    /// A change was committed after the run had started.
    case committedAfterStart = "committed_after_start"
    /// Nothing came for `quiet`, or for twice that after opening at an unconfirmed position.
    case quiet
    /// No response used more than half of the credit for the duration of `quiet`.
    case supplyLimited = "supply_limited"
  }

  package struct Configuration: Sendable {
    package var quiet: Duration
    package var window: Int
    /// Milliseconds since 1970; a commit time later than this + 2 s was made during the run.
    package var runStart: Int64
    package init(quiet: Duration, window: Int, runStart: Int64) {
      self.quiet = quiet
      self.window = window
      self.runStart = runStart
    }
  }

  package typealias Instant = ContinuousClock.Instant

  private var configuration: Configuration
  /// Nil while the stream is not open, because silence then means nothing.
  private var openedAt: Instant?
  private var lastMessage: Instant?
  /// How long a newly opened stream may take to deliver its first message.
  private var firstWait = Duration.zero
  private var lastEvent: Instant?
  /// The time since which every response has left at least half of the window pending.
  private var easySince: Instant?
  /// A response has arrived that cannot be taken yet, so silence says nothing about the service.
  private var isHeld = false
  package private(set) var rule: Rule?

  package init(_ configuration: Configuration) { self.configuration = configuration }

  /// - Parameter isConfirmed: whether the stream resumes at a recently confirmed position. From any
  ///   other place (the earliest event, an old position) the service may search for a long time
  ///   before the first event, and if the run ended too early, the next one would start at the same
  ///   place, so such a stream gets twice the time. A confirmed position cannot get stuck like
  ///   this: once its confirmation is old, the run waits for it.
  package mutating func opened(at now: Instant, isConfirmed: Bool) {
    self.openedAt = now
    self.firstWait = isConfirmed ? self.configuration.quiet : self.configuration.quiet * 2
    self.lastMessage = nil
    self.easySince = nil
    self.isHeld = false
  }

  /// Discards everything observed so far.
  ///
  /// - Parameter time: now by the service's clock, milliseconds since 1970.
  package mutating func beginAgain(at now: Instant, time: Int64) {
    self.configuration.runStart = time
    self.rule = nil
    self.easySince = nil
    if self.lastMessage != nil { self.lastMessage = now }
    if self.lastEvent != nil { self.lastEvent = now }
    if self.openedAt != nil { self.openedAt = now }
  }

  package mutating func closed() { self.openedAt = nil }

  /// Call this for a response that is not ready to be taken, and `responded` once it is.
  package mutating func held() { self.isHeld = true }

  /// - Parameters:
  ///   - pending: the credit left after the response.
  ///   - newestCommit: the newest commit time of its change events, in milliseconds since 1970; nil
  ///     if it has none.
  package mutating func responded(
    events: Int, pending: Int, newestCommit: Int64?, at now: Instant
  ) {
    defer { self.lastMessage = now }
    self.isHeld = false
    if let newestCommit, newestCommit > self.configuration.runStart + 2000 {
      self.rule = self.rule ?? .committedAfterStart
    }
    guard events > 0 else {
      let reference = self.lastEvent ?? self.openedAt ?? now
      if now - reference >= self.configuration.quiet { self.rule = self.rule ?? .keepalive }
      return
    }
    self.lastEvent = now
    if pending * 2 < self.configuration.window {
      self.easySince = nil
    } else if let since = self.easySince {
      if now - since >= self.configuration.quiet { self.rule = self.rule ?? .supplyLimited }
    } else {
      self.easySince = now
    }
  }

  package mutating func tick(at now: Instant) {
    if self.isQuiet(at: now) { self.rule = self.rule ?? .quiet }
  }

  /// Whether nothing has come for long enough. Valid only while nothing is waiting to be taken.
  package func isQuiet(at now: Instant) -> Bool { self.quietDeadline.map { now >= $0 } ?? false }

  /// How long the stream has been silent, and for how long it must be to count as caught up; nil
  /// while the stream is not open or a response is held, and once a rule has decided.
  package func silence(at now: Instant) -> Silence? {
    guard self.rule == nil, let deadline = self.quietDeadline else { return nil }
    let needed = self.lastMessage == nil ? self.firstWait : self.configuration.quiet
    let left = min(max(.zero, deadline - now), needed)
    return Silence(elapsed: needed - left, needed: needed)
  }

  package struct Silence: Sendable, Equatable {
    package var elapsed: Duration
    package var needed: Duration
    package init(elapsed: Duration, needed: Duration) {
      self.elapsed = elapsed
      self.needed = needed
    }
  }

  /// When the silence will be long enough; nil while the stream is not open or a response is held.
  package var quietDeadline: Instant? {
    guard let openedAt = self.openedAt, !self.isHeld else { return nil }
    if let lastMessage = self.lastMessage { return lastMessage + self.configuration.quiet }
    return openedAt + self.firstWait
  }
}
