/// How long to wait before the next attempt: exponential with jitter, reset by a useful response.
struct RetryPolicy: Sendable {
  /// Attempts in a row without a useful response after which to give up; nil: never.
  let limit: Int?
  private(set) var failures = 0

  static let first = Duration.seconds(1)
  static let longest = Duration.seconds(60)

  init(limit: Int?) { self.limit = limit }

  /// An event or a keepalive came: the service works.
  mutating func succeeded() { self.failures = 0 }

  /// - Parameter random: from 0 up to 1.
  /// - Returns: nil when the budget is used up.
  mutating func failed(minimum: Duration, random: Double) -> Duration? {
    self.failures += 1
    if let limit = self.limit, self.failures > limit { return nil }
    let doubled = Self.first * (1 << min(self.failures - 1, 6))
    return max(min(doubled, Self.longest) * (0.8 + 0.4 * random), minimum)
  }
}
