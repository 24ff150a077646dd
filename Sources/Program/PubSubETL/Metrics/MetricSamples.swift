import Pipeline

/// Values of metrics at one moment.
struct MetricSamples: Sendable {
  enum Value: Sendable, Equatable {
    case number(Double)
    case histogram(TimeHistogram)
  }

  /// More series of one metric are not kept. Only the reasons of retries are an open set.
  static let maxSeriesCount = 1000

  /// By the name of the metric, then by the values of its labels.
  private(set) var series: [String: [[String]: Value]] = [:]

  subscript(metric: Metric, labels: String...) -> Value? { self.series[metric.name]?[labels] }

  mutating func set(_ metric: Metric, _ labels: String..., to number: Double) {
    self.set(metric, labels, to: .number(number))
  }

  mutating func set(_ metric: Metric, _ labels: String..., to count: some BinaryInteger) {
    self.set(metric, labels, to: .number(Double(count)))
  }

  mutating func set(_ metric: Metric, _ labels: String..., to histogram: TimeHistogram) {
    self.set(metric, labels, to: .histogram(histogram))
  }

  /// - Parameter milliseconds: since 1970; no sample if it is not known.
  mutating func set(_ metric: Metric, _ labels: String..., toTime milliseconds: Int64?) {
    guard let milliseconds else { return }
    self.set(metric, labels, to: .number(Double(milliseconds) / 1000))
  }

  mutating func set(_ metric: Metric, _ labels: [String], to value: Value) {
    precondition(labels.count == metric.labels.count, "\(metric.name): \(labels.count) labels")
    self.series[metric.name, default: [:]][labels] = value
  }

  /// Adds what earlier runs have counted. A gauge keeps its earlier value if this run has not learned
  /// one.
  ///
  /// - Parameter isKnown: whether earlier values of the labels of a metric are kept.
  mutating func add(
    _ earlier: MetricSamples, where isKnown: (_ metric: Metric, _ labels: [String]) -> Bool
  ) {
    for metric in Metric.all where metric.place != .endpoint {
      for (labels, before) in earlier.series[metric.name] ?? [:] where isKnown(metric, labels) {
        let count = self.series[metric.name]?.count ?? 0
        switch (metric.kind, self.series[metric.name]?[labels], before) {
        case (_, nil, _):
          if count < Self.maxSeriesCount { self.set(metric, labels, to: before) }
        case (.counter, .number(let now), .number(let before)):
          self.set(metric, labels, to: .number(now + before))
        case (.histogram, .histogram(let now), .histogram(let before)):
          self.set(metric, labels, to: .histogram(now.adding(before)))
        default: break
        }
      }
    }
  }
}

extension TimeHistogram {
  /// - Parameter other: with the same bounds.
  fileprivate func adding(_ other: TimeHistogram) -> TimeHistogram {
    TimeHistogram(
      bounds: self.bounds, counts: zip(self.counts, other.counts).map(+),
      sum: self.sum + other.sum)
  }
}
