/// What was used of an allowance that is renewed after a period, such as the deliveries of 24 hours. The
/// period begins with the first use.
struct PeriodicAllowance {
  /// Milliseconds.
  let period: Int64
  private var start: Int64?
  private var usedCount = 0

  init(period: Int64) { self.period = period }

  mutating func use(_ count: Int, at now: Int64) {
    if let start = self.start, now - start < self.period {
      self.usedCount += count
    } else {
      (self.start, self.usedCount) = (now, count)
    }
  }

  func used(at now: Int64) -> Int {
    guard let start = self.start, now - start < self.period else { return 0 }
    return self.usedCount
  }
}
