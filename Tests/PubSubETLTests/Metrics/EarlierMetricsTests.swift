import Pipeline
import Testing

@testable import PubSubETL

@Suite("Metrics of earlier runs") struct EarlierMetricsTests {
  private static var samples: MetricSamples {
    var samples = MetricSamples()
    samples.set(.events, "p", "/data/A", to: 7)
    samples.set(.storeSeconds, "p", "the checkpoint", "commit", to: 0.125)
    samples.set(.retries, "p", "topic", "un\"us\\ual\n", to: 3)
    samples.set(.lastSuccess, "p", toTime: 1_764_293_812_345)
    var lag = TimeHistogram.lag
    lag.add(3, count: 5)
    lag.add(1e9, count: 1)
    samples.set(.lag, "p", "/data/A", to: lag)
    samples.set(.buildInfo, "0.1.0", to: 1)
    return samples
  }

  private static var text: String {
    MetricText(Self.samples, as: .prometheus, in: .textfile).text
  }

  private static func read(_ text: String, pipeline: String = "p") throws -> MetricSamples {
    try MetricSamples(reading: Array(text.utf8), pipeline: pipeline)
  }

  @Test("What is written is read back")
  func roundTrip() throws {
    #expect(try Self.read(Self.text).series == Self.samples.series)
  }

  @Test("A text that ends anywhere is read up to there or refused, and never misread")
  func truncated() throws {
    let text = Array(Self.text.utf8)
    let all = Self.samples.series
    for end in text.indices where text[end - (end > 0 ? 1 : 0)] != UInt8(ascii: "\n") {
      let part = text[..<end]
      // A number may have lost its last digits, so only lines that have ended are compared.
      guard let read = try? MetricSamples(reading: Array(part), pipeline: "p") else { continue }
      for (name, series) in read.series {
        for labels in series.keys { #expect(all[name]?[labels] != nil, "\(name) \(end)") }
      }
      // A histogram without its last line is incomplete.
      if case .histogram(let lag)? = read[.lag, "p", "/data/A"] { #expect(lag.count == 6) }
    }
  }

  @Test("No changed byte is fatal")
  func mutated() {
    let text = Array(Self.text.utf8)
    let bytes: [UInt8] = [0, 0x0A, 0x22, 0x2D, 0x5C, 0x7B, 0x7D, 0x39, 0x65, 0xFF]
    for index in text.indices {
      var changed = text
      changed[index] = bytes[index % bytes.count]
      _ = try? MetricSamples(reading: changed, pipeline: "p")
    }
  }

  @Test(
    "Lines that this program does not write are refused, with their number",
    arguments: [
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} -1"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} NaN"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} +Inf"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} 0x10"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} 1e999"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} "#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} 1 1764293812"#,
      #"pubsub_etl_events_total{pipeline="p",topic="\x"} 1"#,
      #"pubsub_etl_events_total{pipeline="p",topic="/data/A} 1"#,
      #"pubsub_etl_events_total{topic="/data/A",pipeline="p"} 1"#,
      #"pubsub_etl_events_total{pipeline="p"} 1"#,
      "pubsub_etl_events_total 1", "events", "{} 1", "\u{0}",
      #"pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le="1.0"} 0.5"#,
      #"pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le="1.0"} 1e300"#,
      #"pubsub_etl_lag_seconds_sum{pipeline="p",topic="/data/A"} -1"#,
    ])
  func refused(line: String) {
    #expect(throws: MetricSamples.ReadingError.malformed(line: 2)) {
      try Self.read("# HELP pubsub_etl_events_total\n\(line)\n")
    }
  }

  @Test("A series that is there twice, or shrinks from bucket to bucket, is refused")
  func contradictions() {
    let line = #"pubsub_etl_events_total{pipeline="p",topic="/data/A"} 1"#
    #expect(throws: MetricSamples.ReadingError.malformed(line: 2)) {
      try Self.read("\(line)\n\(line)\n")
    }
    let bucket = #"pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le=""#
    #expect(throws: MetricSamples.ReadingError.malformed(line: 2)) {
      try Self.read("\(bucket)1.0\"} 5\n\(bucket)2.0\"} 4\n")
    }
  }

  @Test("Another pipeline is named, unknown metrics are passed over, other bounds begin anew")
  func others() throws {
    #expect(throws: MetricSamples.ReadingError.otherPipeline("p")) {
      try Self.read(Self.text, pipeline: "q")
    }
    let unknown = "up{job=\"x\"} 1\npubsub_etl_new_total{pipeline=\"p\"} 4\n"
    #expect(try Self.read(unknown).series.isEmpty)
    let bounds = Self.text.replacing("le=\"2.0\"", with: "le=\"3.0\"")
    #expect(try Self.read(bounds)[.lag, "p", "/data/A"] == nil)
    let missing = Self.text.split(separator: "\n").filter { !$0.contains("le=\"2.0\"") }
    #expect(try Self.read(missing.joined(separator: "\n"))[.lag, "p", "/data/A"] == nil)
  }

  @Test("Counters add up, gauges keep what a run did not learn, and nothing else is kept")
  func addition() throws {
    var now = MetricSamples()
    now.set(.events, "p", "/data/A", to: 5)
    now.set(.lastSuccess, "p", toTime: 1_764_293_999_000)
    var lag = TimeHistogram.lag
    lag.add(3, count: 1)
    now.set(.lag, "p", "/data/A", to: lag)
    var earlier = Self.samples
    earlier.set(.events, "p", "/data/gone", to: 99)
    earlier.set(.positionConfirmed, "p", "/data/A", toTime: 1_764_000_000_000)
    earlier.set(.creditPending, "p", "/data/A", to: 1)
    now.add(earlier) { _, labels in !labels.contains("/data/gone") }
    #expect(now[.events, "p", "/data/A"] == .number(12))
    #expect(now[.events, "p", "/data/gone"] == nil)
    #expect(now[.lastSuccess, "p"] == .number(1_764_293_999))
    #expect(now[.positionConfirmed, "p", "/data/A"] == .number(1_764_000_000))
    #expect(now[.creditPending, "p", "/data/A"] == nil)
    lag.add(3, count: 5)
    lag.add(1e9, count: 1)
    #expect(now[.lag, "p", "/data/A"] == .histogram(lag))
  }

  @Test("The number of series that are kept is limited")
  func bounded() {
    var earlier = MetricSamples()
    for index in 0..<(2 * MetricSamples.maxSeriesCount) {
      earlier.set(.retries, "p", "topic", "code\(index)", to: 1)
    }
    var now = MetricSamples()
    now.set(.retries, "p", "topic", "other", to: 1)
    now.add(earlier) { _, _ in true }
    #expect(now.series[Metric.retries.name]?.count == MetricSamples.maxSeriesCount)
  }
}
