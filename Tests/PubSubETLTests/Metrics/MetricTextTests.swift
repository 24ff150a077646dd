import Pipeline
import Testing

@testable import PubSubETL

@Suite("Text of metrics") struct MetricTextTests {
  private var samples: MetricSamples {
    var samples = MetricSamples()
    samples.set(.events, "p", "/data/B", to: 12)
    samples.set(.events, "p", "/data/A", to: 9_007_199_254_740_992.0)
    samples.set(.lastSuccess, "p", toTime: 1_764_293_812_345)
    samples.set(.lastCommit, "p", toTime: nil)
    samples.set(.allowanceLeft, "a\\b\"c\nd", to: -5)
    samples.set(.creditPending, "p", "/data/A", to: 100)
    var lag = TimeHistogram(bounds: [1, 2.5])
    lag.add(0.5, count: 3)
    lag.add(9, count: 1)
    samples.set(.lag, "p", "/data/A", to: lag)
    return samples
  }

  @Test("The text format 0.0.4 has the metrics of textfiles, with labels escaped")
  func prometheus() {
    let text = MetricText(self.samples, as: .prometheus, in: .textfile).text
    #expect(
      text == #"""
        # HELP pubsub_etl_events_total Events that are durable in every sink, or as dead letters.
        # TYPE pubsub_etl_events_total counter
        pubsub_etl_events_total{pipeline="p",topic="/data/A"} 9007199254740992
        pubsub_etl_events_total{pipeline="p",topic="/data/B"} 12
        # HELP pubsub_etl_lag_seconds Time from the commit in Salesforce, a whole second, until the event is durable; per change event.
        # TYPE pubsub_etl_lag_seconds histogram
        pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le="1.0"} 3
        pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le="2.5"} 3
        pubsub_etl_lag_seconds_bucket{pipeline="p",topic="/data/A",le="+Inf"} 4
        pubsub_etl_lag_seconds_sum{pipeline="p",topic="/data/A"} 10.5
        pubsub_etl_lag_seconds_count{pipeline="p",topic="/data/A"} 4
        # HELP pubsub_etl_allowance_left_events How many of them were left when the org was last asked; negative if overspent.
        # TYPE pubsub_etl_allowance_left_events gauge
        pubsub_etl_allowance_left_events{pipeline="a\\b\"c\nd"} -5
        # HELP pubsub_etl_last_success_timestamp_seconds When the last run with exit code 0 ended.
        # TYPE pubsub_etl_last_success_timestamp_seconds gauge
        pubsub_etl_last_success_timestamp_seconds{pipeline="p"} 1764293812.345

        """#)
  }

  @Test("OpenMetrics has names of families, units and an end, and the metrics of a run in progress")
  func openMetrics() {
    let text = MetricText(self.samples, as: .openMetrics, in: .endpoint).text
    let lines = text.split(separator: "\n")
    #expect(lines.contains("# TYPE pubsub_etl_events counter"))
    #expect(lines.contains(#"pubsub_etl_events_total{pipeline="p",topic="/data/B"} 12"#))
    #expect(lines.contains("# UNIT pubsub_etl_lag_seconds seconds"))
    #expect(lines.contains(#"pubsub_etl_credit_pending_events{pipeline="p",topic="/data/A"} 100"#))
    #expect(!lines.contains { $0.contains("last_success") })
    #expect(lines.last == "# EOF")
  }

  @Test("Names, units and labels follow the conventions of Prometheus")
  func conventions() {
    #expect(Set(Metric.all.map(\.fullName)).count == Metric.all.count)
    for metric in Metric.all {
      #expect(metric.fullName.wholeMatch(of: /pubsub_etl_[a-z][a-z_]*/) != nil, "\(metric.name)")
      #expect((metric.kind == .counter) == metric.name.hasSuffix("_total"), "\(metric.name)")
      #expect((metric.kind == .histogram) == (metric.buckets != nil), "\(metric.name)")
      #expect(metric.labels.first == .pipeline || metric.labels == [.version], "\(metric.name)")
      #expect(metric.help.hasSuffix(".") && !metric.help.contains("\\"), "\(metric.name)")
    }
  }
}
