/// How fast a topic is read, by what was seen in the last seconds.
struct ProgressPace: Sendable {
  private struct Sample {
    var time: Duration
    var events: Int64
    /// Milliseconds since 1970.
    var newestCommit: Int64?
  }

  /// The rate is that of the last seconds.
  private static let window = Duration.seconds(5)
  /// Commit times come in bursts, so the time left is that of a longer period.
  private static let longWindow = Duration.seconds(30)
  /// A period that says how long the rest will take.
  private static let shortestPeriod = Duration.seconds(3)

  private var samples: [Sample] = []

  /// - Parameter time: since the run began, by a monotonic clock.
  mutating func note(events: Int64, newestCommit: Int64?, at time: Duration) {
    self.samples.append(Sample(time: time, events: events, newestCommit: newestCommit))
    while self.samples.count > 2, time - self.samples[1].time >= Self.longWindow {
      self.samples.removeFirst()
    }
  }

  /// Events a second.
  var rate: Int64 {
    guard let last = self.samples.last,
      let first = self.samples.last(where: { last.time - $0.time >= Self.window })
        ?? self.samples.first, last.time > first.time
    else { return 0 }
    let seconds = (last.time - first.time) / .seconds(1)
    return Int64((Double(last.events - first.events) / seconds).rounded())
  }

  /// The time until the newest change is as new as now, while changes go on as they come: each second
  /// of reading must bring more than a second of changes.
  ///
  /// - Returns: nil if that cannot be said, or will not be.
  func timeLeft(behind lag: Duration) -> Duration? {
    guard let last = self.samples.last,
      let first = self.samples.first(where: { $0.newestCommit != nil }),
      let (from, to) = first.newestCommit.flatMap({ from in last.newestCommit.map { (from, $0) } }),
      last.time - first.time >= Self.shortestPeriod
    else { return nil }
    let period = (last.time - first.time) / .milliseconds(1)
    let gained = Double(to - from) - period
    guard gained > 0 else { return nil }
    let left = lag * (period / gained)
    return left < .seconds(7 * 86_400) ? .seconds(left.components.seconds + 1) : nil
  }
}
