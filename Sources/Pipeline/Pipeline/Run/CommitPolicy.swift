/// Decides when written events are made durable: at once while nothing else is to be done, and no
/// more often than the disk can bear.
///
/// The open commit is ripe once the last one is `pause` ago. A ripe commit ends when no more events
/// are waiting, or where the transaction key changes. `Limits` end it wherever it is, except that a
/// commit of `maxEvents` events waits for the next change of key, up to twice that number.
package struct CommitPolicy: Sendable {
  package struct Limits: Sendable {
    package var maxEvents: Int
    /// The limit for encoded output.
    package var maxBytes: Int
    package var maxDelay: Duration
    package init(maxEvents: Int, maxBytes: Int, maxDelay: Duration) {
      self.maxEvents = maxEvents
      self.maxBytes = maxBytes
      self.maxDelay = maxDelay
    }
  }

  /// A pause is this many times as long as the commit before it, so that commits use less than a
  /// twentieth of the time.
  private static let pausePerCommit = 20
  /// The shortest pause. Each commit ends a block of a compressed file: with one for every few
  /// events, files would be up to 40 % larger.
  private static let shortestPause: Duration = .milliseconds(100)
  /// How long the first event waits for the rest of its transaction, which may come in several
  /// responses.
  private static let gathering: Duration = .milliseconds(5)

  private let limits: Limits
  package private(set) var eventCount = 0
  private var firstAt: ContinuousClock.Instant?
  private var sealedAt: ContinuousClock.Instant?
  private var lastCommit: ContinuousClock.Instant?
  private var pause: Duration = .zero
  /// Whether the open commit was ripe when the current response arrived.
  private var isRipe = false

  package init(_ limits: Limits) { self.limits = limits }

  /// Whether the batch should end before the next event.
  ///
  /// - Parameter keyChanges: whether the transaction key differs from that of the previous event;
  ///   evaluated only if it matters.
  package func endsBefore(keyChanges: @autoclosure () -> Bool) -> Bool {
    guard self.isRipe || self.eventCount >= self.limits.maxEvents else { return false }
    return self.eventCount >= self.limits.maxEvents * 2 || keyChanges()
  }

  /// The number of events that may be taken before `endsBefore` can be true for another one.
  package var eventCountBeforeDecision: Int {
    self.isRipe ? 0 : max(0, self.limits.maxEvents - self.eventCount)
  }

  /// Notes that a response is about to be taken.
  package mutating func begin(at now: ContinuousClock.Instant) {
    self.isRipe = self.ripeAt.map { now >= $0 } ?? false
  }

  /// When the open commit is ripe; nil while it has no events.
  package var ripeAt: ContinuousClock.Instant? {
    guard self.eventCount > 0, let firstAt, let deadline else { return nil }
    let gathered = firstAt + Self.gathering
    return min(self.lastCommit.map { max(gathered, $0 + self.pause) } ?? gathered, deadline)
  }

  /// Counts events of a response.
  ///
  /// The age of events that waited for the last commit counts from the end of that commit.
  /// Otherwise a sink that is slower than the stream would commit every response alone and become
  /// even slower.
  ///
  /// - Parameters:
  ///   - events: 0 for a response that only moves the position.
  ///   - now: when the response arrived.
  package mutating func took(events: Int, at now: ContinuousClock.Instant) {
    self.eventCount += events
    self.firstAt = self.firstAt ?? self.lastCommit.map { max($0, now) } ?? now
  }

  /// Whether the open commit should end now.
  ///
  /// - Parameter isIdle: no more events are waiting.
  package func isDue(
    pendingBytes: Int, isIdle: Bool, at now: ContinuousClock.Instant
  ) -> Bool {
    if self.isTooLarge(pendingBytes: pendingBytes) { return true }
    guard let due = isIdle ? self.ripeAt ?? self.deadline : self.deadline else { return false }
    return now >= due
  }

  package func isTooLarge(pendingBytes: Int) -> Bool { pendingBytes >= self.limits.maxBytes }

  package var deadline: ContinuousClock.Instant? { self.firstAt.map { $0 + self.limits.maxDelay } }

  /// The counted events are being committed, and the next commit begins.
  package mutating func sealed(at now: ContinuousClock.Instant) {
    self.eventCount = 0
    self.firstAt = nil
    self.sealedAt = now
    self.isRipe = false
  }

  /// - Parameter now: when the commit was complete.
  package mutating func committed(at now: ContinuousClock.Instant) {
    self.firstAt = self.firstAt.map { max($0, now) }
    self.lastCommit = now
    let took = self.sealedAt.map { now - $0 } ?? .zero
    self.pause = max(took * Self.pausePerCommit, Self.shortestPause)
  }

  /// Whether the open commit is full.
  package func isFull(pendingBytes: Int) -> Bool {
    self.eventCount >= self.limits.maxEvents || self.isTooLarge(pendingBytes: pendingBytes)
  }
}
