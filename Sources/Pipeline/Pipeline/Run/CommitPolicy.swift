/// Decides when written events are made durable: as many as have arrived, within limits.
///
/// A batch prefers to end where the transaction key changes: after `maxEvents` events, it waits for
/// the next change of key, up to twice that number.
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

  private let limits: Limits
  package private(set) var eventCount = 0
  private var firstAt: ContinuousClock.Instant?
  private var lastCommit: ContinuousClock.Instant?

  package init(_ limits: Limits) { self.limits = limits }

  /// Whether the batch should end before the next event.
  ///
  /// - Parameter keyChanges: whether the transaction key differs from that of the previous event;
  ///   evaluated only if it matters.
  package func endsBefore(keyChanges: @autoclosure () -> Bool) -> Bool {
    self.eventCount >= self.limits.maxEvents
      && (self.eventCount >= self.limits.maxEvents * 2 || keyChanges())
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

  /// Whether the pending events have become too large or too old.
  package func isDue(pendingBytes: Int, at now: ContinuousClock.Instant) -> Bool {
    if self.isTooLarge(pendingBytes: pendingBytes) { return true }
    guard let deadline = self.deadline else { return false }
    return now >= deadline
  }

  package func isTooLarge(pendingBytes: Int) -> Bool { pendingBytes >= self.limits.maxBytes }

  package var deadline: ContinuousClock.Instant? { self.firstAt.map { $0 + self.limits.maxDelay } }

  /// The counted events are being committed, and the next commit begins.
  package mutating func sealed() {
    self.eventCount = 0
    self.firstAt = nil
  }

  /// - Parameter now: when the commit was complete.
  package mutating func committed(at now: ContinuousClock.Instant) {
    self.firstAt = self.firstAt.map { max($0, now) }
    self.lastCommit = now
  }

  /// Whether the open commit is full.
  package func isFull(pendingBytes: Int) -> Bool {
    self.eventCount >= self.limits.maxEvents || self.isTooLarge(pendingBytes: pendingBytes)
  }
}
