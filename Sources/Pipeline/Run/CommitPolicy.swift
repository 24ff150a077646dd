/// Decides when written events are made durable: as many as have arrived, within limits.
///
/// A batch prefers to end where the transaction key changes: from `maxEvents` on it waits for the
/// next change of key, up to twice that number.
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

  /// True when the batch should end before an event whose transaction key differs (or not) from
  /// that of the event before it.
  ///
  /// - Parameter keyChanges: evaluated only when it matters.
  package func endsBefore(keyChanges: @autoclosure () -> Bool) -> Bool {
    self.eventCount >= self.limits.maxEvents
      && (self.eventCount >= self.limits.maxEvents * 2 || keyChanges())
  }

  /// Counts events of a response.
  ///
  /// The age of events that waited for the last commit counts from its end. Otherwise a sink that
  /// is slower than the stream would commit every response alone and become even slower.
  ///
  /// - Parameters:
  ///   - events: 0 for a response that only moves the position.
  ///   - now: when the response came.
  package mutating func took(events: Int, at now: ContinuousClock.Instant) {
    self.eventCount += events
    self.firstAt = self.firstAt ?? self.lastCommit.map { max($0, now) } ?? now
  }

  /// True when the pending events have become too large or too old.
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

  /// - Parameter now: when the commit had been made.
  package mutating func committed(at now: ContinuousClock.Instant) {
    self.firstAt = self.firstAt.map { max($0, now) }
    self.lastCommit = now
  }

  /// The open commit is full.
  package func isFull(pendingBytes: Int) -> Bool {
    self.eventCount >= self.limits.maxEvents || self.isTooLarge(pendingBytes: pendingBytes)
  }
}
