internal import EventLoop

/// How many events the service may still deliver to a run, so that some of the org's daily allowance
/// is left for its other subscribers.
///
/// The service counts deliveries minutes late (RESTAndBulk.md#limits). So all deliveries since the
/// *previous* query are deducted from the figure of a query, which may not include them yet.
package final class DeliveryAllowance: Sendable {
  private struct State {
    /// The total number of events that may be delivered to this run.
    var limit: Int64
    var delivered: Int64 = 0
    /// The deliveries at the last query.
    var deliveredBefore: Int64 = 0
    /// Never reset, because streams have already ended because of it.
    var isSpent = false

    var left: Int64 { self.limit.subtractingReportingOverflow(self.delivered).partialValue }
  }

  /// The reserve.
  private let reserve: Int64
  /// Outstanding events, which arrive whatever is decided in the meantime.
  private let outstanding: Int64
  private let state: Lock<State>

  /// - Parameters:
  ///   - remaining: events left of the org's allowance; negative if it is overspent.
  ///   - reserve: events to leave unused, 0 or more.
  ///   - outstanding: events that all streams together request at a time.
  package init(remaining: Int64, reserve: Int64, outstanding: Int) {
    self.reserve = reserve
    self.outstanding = Int64(outstanding)
    self.state = Lock(State(limit: Self.spendable(remaining, reserve)))
  }

  private static func spendable(_ remaining: Int64, _ reserve: Int64) -> Int64 {
    let (left, isOverflow) = remaining.subtractingReportingOverflow(reserve)
    return isOverflow ? .min : left
  }

  /// The number of events that may still be delivered.
  package var left: Int64 { self.state.withLock(\.left) }

  /// Whether no more events may be requested.
  package var isSpent: Bool { self.received(0) == false }

  /// Call this when one of the streams has received events.
  ///
  /// - Returns: whether more events may be requested.
  package func received(_ count: Int) -> Bool {
    self.state.withLock { state in
      state.delivered += Int64(count)
      if state.left <= self.outstanding { state.isSpent = true }
      return !state.isSpent
    }
  }

  /// Updates the allowance with a new answer from the service.
  package func renew(remaining: Int64) {
    self.state.withLock { state in
      let spendable = Self.spendable(remaining, self.reserve)
      let (limit, isOverflow) = spendable.addingReportingOverflow(state.deliveredBefore)
      state.limit = isOverflow ? .max : limit
      state.deliveredBefore = state.delivered
    }
  }
}
