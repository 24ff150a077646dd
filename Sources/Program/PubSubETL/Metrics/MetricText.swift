import Pipeline

/// The text of metrics.
///
/// Two formats exist. `prometheus` is the text format 0.0.4, the only one that the textfile collector of
/// node_exporter reads. `openMetrics` is OpenMetrics 1.0, which Prometheus asks for when it scrapes.
/// Sources: prometheus.io/docs/instrumenting/exposition_formats, the OpenMetrics specification.
struct MetricText {
  enum Format: Sendable, CaseIterable {
    case prometheus, openMetrics

    var contentType: String {
      switch self {
      case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
      case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      }
    }
  }

  private let format: Format
  private(set) var text = ""

  /// - Parameter place: metrics of other places are left out.
  init(_ samples: MetricSamples, as format: Format, in place: Metric.Place) {
    self.format = format
    for metric in Metric.all where metric.place == .both || metric.place == place {
      guard let series = samples.series[metric.name], !series.isEmpty else { continue }
      self.addHead(metric)
      for (labels, value) in series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        let pairs = zip(metric.labels, labels).map { Self.pair($0.rawValue, $1) }
        switch value {
        case .number(let number): self.addSample(metric.fullName, pairs, number)
        case .histogram(let histogram): self.add(histogram, metric.fullName, pairs)
        }
      }
    }
    if format == .openMetrics { self.text += "# EOF\n" }
  }

  private mutating func addHead(_ metric: Metric) {
    let name = self.format == .openMetrics ? metric.familyName : metric.fullName
    self.text += "# HELP \(name) \(metric.help)\n# TYPE \(name) \(metric.kind.rawValue)\n"
    if self.format == .openMetrics, let unit = metric.unit {
      self.text += "# UNIT \(name) \(unit)\n"
    }
  }

  private mutating func addSample(_ name: String, _ pairs: [String], _ number: Double) {
    let labels = pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
    self.text += "\(name)\(labels) \(Self.text(number))\n"
  }

  private mutating func add(_ histogram: TimeHistogram, _ name: String, _ pairs: [String]) {
    var count = 0
    for (index, times) in histogram.counts.enumerated() {
      count += times
      let bound = index < histogram.bounds.count ? "\(histogram.bounds[index])" : "+Inf"
      self.addSample("\(name)_bucket", pairs + [Self.pair("le", bound)], Double(count))
    }
    self.addSample("\(name)_sum", pairs, histogram.sum)
    self.addSample("\(name)_count", pairs, Double(count))
  }

  /// Counts have no decimal point.
  private static func text(_ number: Double) -> String {
    Int64(exactly: number).map { "\($0)" } ?? "\(number)"
  }

  private static func pair(_ label: String, _ value: String) -> String {
    var escaped = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return "\(label)=\"\(escaped)\""
  }
}
