/// The number of events that took at most so long, for some bounds. A value; times are seconds.
package struct TimeHistogram: Sendable, Equatable {
  /// Inclusive, ascending.
  package let bounds: [Double]
  /// Events by the first bound that their time does not exceed; the last count is of times beyond all
  /// bounds.
  package private(set) var counts: [Int]
  /// The sum of the times of all events.
  package private(set) var sum = 0.0

  /// The time from a commit in Salesforce until the event is durable. Commit times are whole seconds; a
  /// backlog is as old as the service keeps events, 72 h.
  package static let lag = TimeHistogram(
    bounds: [1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 172_800, 259_200])
  /// The time from the arrival of an event until it is durable.
  package static let processing = TimeHistogram(
    bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300])

  package init(bounds: [Double]) {
    self.bounds = bounds
    self.counts = [Int](repeating: 0, count: bounds.count + 1)
  }

  /// - Parameters:
  ///   - counts: as `counts`, one more than bounds.
  ///   - sum: 0 or more.
  package init(bounds: [Double], counts: [Int], sum: Double) {
    precondition(counts.count == bounds.count + 1, "\(counts.count) counts")
    (self.bounds, self.counts, self.sum) = (bounds, counts, sum)
  }

  package var count: Int { self.counts.reduce(0, +) }

  /// - Parameter time: counts as 0 if it is negative, which happens when two clocks are compared.
  package mutating func add(_ time: Double, count: Int) {
    let time = max(0, time)
    let index = self.bounds.firstIndex { time <= $0 } ?? self.bounds.count
    self.counts[index] += count
    self.sum += time * Double(count)
  }
}
