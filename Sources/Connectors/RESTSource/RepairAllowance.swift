internal import Clocks
internal import EventLoop
internal import SalesforceREST

/// Limits the calls for records by ID, so that faulty events do not use up what others need.
/// Counted per day, over all runs.
final class RepairAllowance: Sendable {
  private struct State {
    var made: Int
    var untold = 0
    var dayEnds: ContinuousClock.Instant
  }

  private let maxCalls: Int?
  private let reserve: Double
  private let state: Lock<State>

  /// The share of the org's requests that may be used if the pipeline sets no limit.
  private static let share = 0.05
  /// The org's daily requests, assumed until its first response reports them. No org has fewer.
  private static let fewestRequests = 5000
  private static let day = Duration.seconds(24 * 3600)

  init(_ options: SnapshotReader.Options, from now: ContinuousClock.Instant) {
    self.maxCalls = options.maxRepairCalls
    self.reserve = options.reserve
    self.state = Lock(State(made: options.repairCallsMade, dayEnds: now + Self.day))
  }

  /// Counts a call that is about to be made.
  ///
  /// - Parameter usage: the org's API usage in the newest response; nil before the first.
  /// - Throws: `RESTError` (quota) if the call must not be made.
  func take(
    usage: RESTClient.Usage?, now: ContinuousClock.Instant
  ) throws(RESTError) {
    if let usage, Double(usage.used) >= Double(usage.limit) * (1 - self.reserve) {
      throw RESTError(
        .quota,
        "\(usage.used) of the org's \(usage.limit) API requests of 24 hours are used; records are "
          + "not read again until more are left than repair.reserve")
    }
    let limit =
      self.maxCalls ?? Int(Double(usage?.limit ?? Self.fewestRequests) * Self.share)
    try self.state.withLock { state throws(RESTError) in
      if now >= state.dayEnds { (state.made, state.dayEnds) = (0, now + Self.day) }
      guard state.made < limit else {
        throw RESTError(
          .quota,
          "\(state.made) calls were made to read records again today, and repair.max_calls allows "
            + "\(limit) a day; the next run after midnight UTC continues, or raise the limit")
      }
      state.made += 1
      state.untold += 1
    }
  }

  /// Returns the calls that no signal has reported yet.
  func takeUntold() -> Int {
    self.state.withLock { state in
      defer { state.untold = 0 }
      return state.untold
    }
  }
}
