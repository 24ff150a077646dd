/// For how long, and at which pace, what fails for the moment is tried again. Streams, logins, REST
/// and databases obey the same one.
public struct RetrySchedule: Sendable, Equatable {
  /// Time since the first of the failures in a row after which to give up; nil: never. If that was
  /// a request without an answer, since the request.
  public var giveUpAfter: Duration?
  /// Pause after the first failure. It doubles with each failure, up to `maxDelay`.
  public var minDelay: Duration
  public var maxDelay: Duration

  public init(
    giveUpAfter: Duration? = .seconds(600), minDelay: Duration = .seconds(1),
    maxDelay: Duration = .seconds(60)
  ) {
    self.giveUpAfter = giveUpAfter
    self.minDelay = minDelay
    self.maxDelay = maxDelay
  }
}

/// The failures in a row of one thing that is tried again under a schedule.
///
/// A value: time and chance are arguments.
package struct Retries: Sendable {
  package typealias Instant = ContinuousClock.Instant

  package let schedule: RetrySchedule
  /// Pauses after the first failures, before those of the schedule.
  private let quickDelays: [Duration]
  package private(set) var failures = 0
  /// When the first of them was.
  private var since: Instant?

  /// - Parameter quickDelays: for what is often over in a moment, and costs nobody anything.
  package init(_ schedule: RetrySchedule, quickDelays: [Duration] = []) {
    self.schedule = schedule
    self.quickDelays = quickDelays
  }

  /// It has worked, usefully.
  package mutating func succeeded() {
    self.failures = 0
    self.since = nil
  }

  /// Time since the first of the failures in a row; zero without one.
  package func elapsed(at now: Instant) -> Duration { self.since.map { now - $0 } ?? .zero }

  /// Time that passes for another reason does not count.
  package mutating func excuse(_ duration: Duration) {
    self.since = self.since.map { $0 + duration }
  }

  /// - Parameters:
  ///   - silence: since when the peer has left the failed attempt unanswered, which counts too.
  ///   - minimum: what the peer asks to be left alone for, whatever the schedule says.
  ///   - random: from 0 up to 1; a fifth of jitter either way keeps clients apart.
  /// - Returns: the pause before the next attempt; nil when it is time to give up. The last attempt
  ///   comes when the time is over, not before.
  package mutating func failed(
    at now: Instant, silence: Instant? = nil, minimum: Duration = .zero, random: Double
  ) -> Duration? {
    let since = self.since ?? silence ?? now
    self.since = since
    var delay = self.backOff(after: self.failures) * (0.8 + 0.4 * random)
    self.failures += 1
    if let limit = self.schedule.giveUpAfter {
      let left = limit - (now - since)
      guard left > .zero else { return nil }
      delay = min(delay, left)
    }
    return max(delay, minimum)
  }

  private func backOff(after failures: Int) -> Duration {
    if failures < self.quickDelays.count { return self.quickDelays[failures] }
    // Beyond 2^20 of the shortest pause, no schedule has a longer one.
    let doublings = min(failures - self.quickDelays.count, 20)
    return min(self.schedule.maxDelay, self.schedule.minDelay * (1 << doublings))
  }

  /// What to add to the last error after giving up; empty when there was but one attempt.
  ///
  /// - Parameter setting: the name of `giveUpAfter` to whoever reads the text.
  package func verdict(at now: Instant, setting: String = "retry.give_up_after") -> String {
    guard self.failures > 1 else { return "" }
    return "; gave up after \(self.failures) failed attempts in "
      + "\(self.elapsed(at: now).components.seconds) s (\(setting))"
  }
}
