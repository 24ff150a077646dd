import Bytes
import Pipeline

extension MetricSamples {
  /// Why a text is not that of an earlier run.
  enum ReadingError: Error, Equatable {
    case malformed(line: Int)
    /// It is about another pipeline.
    case otherPipeline(String)
  }

  /// Reads what an earlier run has written, in the text format 0.0.4. Hostile input: every line has to be
  /// one that this program could have written, except that names of unknown metrics are passed over.
  init(reading text: [UInt8], pipeline: String) throws(ReadingError) {
    var histograms: [String: [[String]: HistogramLines]] = [:]
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, bytes) in lines.enumerated() where !bytes.isEmpty && bytes.first != Self.comment {
      guard let sample = SampleLine(bytes) else { throw .malformed(line: index + 1) }
      guard let (metric, part) = Self.known[sample.name] else { continue }
      let names = metric.labels.map(\.rawValue) + (part == .bucket ? ["le"] : [])
      guard sample.labels.map(\.name) == names else { throw .malformed(line: index + 1) }
      let labels = sample.labels.prefix(metric.labels.count).map(\.value)
      if metric.labels.first == .pipeline, labels[0] != pipeline { throw .otherPipeline(labels[0]) }
      switch part {
      case .number:
        guard metric.kind == .gauge || sample.value >= 0, self.series[metric.name]?[labels] == nil
        else { throw .malformed(line: index + 1) }
        self.set(metric, labels, to: .number(sample.value))
      case .bucket, .sum, .count:
        let bound = part == .bucket ? sample.labels.last?.value : nil
        guard
          histograms[metric.name, default: [:]][labels, default: HistogramLines()]
            .add(part, bound: bound, sample.value)
        else { throw .malformed(line: index + 1) }
      }
    }
    for metric in Metric.all {
      for (labels, lines) in histograms[metric.name] ?? [:] {
        // With other bounds than those of this version, it begins anew.
        guard let bounds = metric.buckets?.bounds, let histogram = lines.histogram(bounds) else {
          continue
        }
        self.set(metric, labels, to: .histogram(histogram))
      }
    }
  }

  private static let comment = UInt8(ascii: "#")

  /// Metrics of textfiles by the names of their samples.
  private static let known: [String: (Metric, SamplePart)] = Dictionary(
    uniqueKeysWithValues: Metric.all.filter { $0.place != .endpoint }.flatMap {
      metric -> [(String, (Metric, SamplePart))] in
      guard metric.kind == .histogram else { return [(metric.fullName, (metric, .number))] }
      return [
        ("\(metric.fullName)_bucket", (metric, .bucket)),
        ("\(metric.fullName)_sum", (metric, .sum)), ("\(metric.fullName)_count", (metric, .count)),
      ]
    })
}

private enum SamplePart {
  case number, bucket, sum, count
}

/// The samples of a histogram.
private struct HistogramLines {
  /// Cumulative counts by the texts of their bounds, in the order of the lines.
  private var buckets: [(bound: String, count: Double)] = []
  private var sum: Double?
  private var count: Double?

  /// Larger counts are no whole numbers any more.
  static let maxCount = 9_007_199_254_740_992.0

  /// - Returns: false for a sample that is negative, no count or there already.
  mutating func add(_ part: SamplePart, bound: String?, _ value: Double) -> Bool {
    guard value >= 0, part == .sum || value <= Self.maxCount && value == value.rounded() else {
      return false
    }
    switch part {
    case .bucket:
      guard let bound, value >= self.buckets.last?.count ?? 0 else { return false }
      self.buckets.append((bound, value))
    case .sum:
      guard self.sum == nil else { return false }
      self.sum = value
    case .count:
      guard self.count == nil else { return false }
      self.count = value
    case .number: return false
    }
    return true
  }

  /// - Returns: nil unless it has exactly these bounds and agrees with itself.
  func histogram(_ bounds: [Double]) -> TimeHistogram? {
    let expected = bounds.map { "\($0)" } + ["+Inf"]
    guard let sum, let count, self.buckets.map(\.bound) == expected,
      self.buckets.last?.count == count
    else { return nil }
    var before = 0.0
    let counts = self.buckets.map { bucket in
      defer { before = bucket.count }
      return Int(bucket.count - before)
    }
    return TimeHistogram(bounds: bounds, counts: counts, sum: sum)
  }
}

/// `name{label="value",…} number`
private struct SampleLine {
  var name: String
  var labels: [(name: String, value: String)] = []
  var value: Double

  /// Labels of a sample; ours have at most four.
  private static let maxLabelCount = 10

  init?(_ line: ArraySlice<UInt8>) {
    var rest = line
    guard let name = Self.takeName(&rest) else { return nil }
    if rest.first == UInt8(ascii: "{") {
      rest.removeFirst()
      while rest.first != UInt8(ascii: "}") {
        guard let label = Self.takeName(&rest), Self.take("=\"", &rest),
          let value = Self.takeValue(&rest), self.labels.count < Self.maxLabelCount
        else { return nil }
        self.labels.append((label, value))
        guard rest.first == UInt8(ascii: ",") else { break }
        rest.removeFirst()
      }
      guard Self.take("}", &rest) else { return nil }
    }
    guard Self.take(" ", &rest), let number = Self.number(rest) else { return nil }
    self.name = name
    self.value = number
  }

  private static func take(_ text: StaticString, _ rest: inout ArraySlice<UInt8>) -> Bool {
    let bytes = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    guard rest.starts(with: bytes) else { return false }
    rest.removeFirst(bytes.count)
    return true
  }

  private static func takeName(_ rest: inout ArraySlice<UInt8>) -> String? {
    let name = rest.prefix { $0.isWordCharacter }
    guard !name.isEmpty else { return nil }
    rest.removeFirst(name.count)
    return String(decoding: name, as: UTF8.self)
  }

  /// The value of a label and the quote after it.
  private static func takeValue(_ rest: inout ArraySlice<UInt8>) -> String? {
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return String(validating: value, as: UTF8.self)
      case UInt8(ascii: "\\"):
        switch rest.popFirst() {
        case UInt8(ascii: "n"): value.append(UInt8(ascii: "\n"))
        case UInt8(ascii: "\\"): value.append(UInt8(ascii: "\\"))
        case UInt8(ascii: "\""): value.append(UInt8(ascii: "\""))
        default: return nil
        }
      default: value.append(byte)
      }
    }
    return nil
  }

  /// Nil unless the text is a decimal number that is finite.
  private static func number(_ text: ArraySlice<UInt8>) -> Double? {
    let isDecimal = text.allSatisfy { byte in
      (0x30...0x39).contains(byte) || ".+-e".utf8.contains(byte)
    }
    guard isDecimal, text.count <= 32, let number = Double(String(decoding: text, as: UTF8.self)),
      number.isFinite
    else { return nil }
    return number
  }
}
