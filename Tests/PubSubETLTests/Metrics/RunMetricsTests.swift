import Checkpoint
import Clocks
import EventLoop
import Glibc
import OrgTestSupport
import Pipeline
import PubSubSimulator
import Testing

@testable import PubSubETL

@Suite("Metrics of runs") struct RunMetricsTests {
  private func samples(_ configuration: PipelineConfiguration) throws -> MetricSamples {
    let path = try #require(configuration.metrics.textfile)
    return try MetricSamples(reading: TextFile.read(path), pipeline: "opps")
  }

  private static let topic = "/data/OpportunityChangeEvent"

  @Test("The textfile has the sums of all runs, those that failed included")
  func sums() async throws {
    let pipeline = try await SimulatedPipeline(events: 30)
    let sets = ["metrics.textfile=opps.prom", #"run.until={"events":10}"#]
    let configuration = try pipeline.load(sets: sets)
    var reports: [RunReport] = []
    for environment in [[:], ["SF_CLIENT_SECRET": "wrong"], [:]] {
      let run = try pipeline.makeRun(
        try pipeline.load(sets: sets, environment: environment))
      await run.execute()
      reports.append(run.report)
    }
    #expect(reports.map(\.exitCode) == [.success, .refused, .success])
    let samples = try self.samples(configuration)
    func sum(_ value: (RunReport) -> Int64) -> MetricSamples.Value {
      .number(Double(reports.reduce(0) { $0 + value($1) }))
    }
    let topic = Self.topic
    #expect(samples[.events, "opps", topic] == .number(20))
    #expect(samples[.events, "opps", topic] == sum { $0.topics.first?.exported ?? 0 })
    #expect(samples[.delivered, "opps", topic] == sum { $0.topics.first?.delivered ?? 0 })
    #expect(samples[.rows, "opps", topic] == sum { $0.topics.first?.rows ?? 0 })
    #expect(samples[.sinkFiles, "opps", "files"] == sum { Int64($0.sinks.first?.files ?? 0) })
    #expect(samples[.sinkBytes, "opps", "files"] == sum { $0.sinks.first?.bytes ?? 0 })
    #expect(samples[.schemaFetches, "opps"] == sum { $0.schemas.fetched })
    #expect(samples[.schemaCacheHits, "opps"] == sum { $0.schemas.cached })
    #expect(samples[.runs, "opps", "0"] == .number(2))
    #expect(samples[.runs, "opps", "77"] == .number(1))
    #expect(samples[.lastExitCode, "opps"] == .number(0))
    for histogram in [Metric.lag, .processing] {
      guard case .histogram(let times)? = samples[histogram, "opps", topic] else {
        Issue.record("no \(histogram.name)")
        continue
      }
      #expect(times.count == 20)
    }
    await pipeline.org.stop()
  }

  @Test("A run that fails keeps the position, the last success and what it did not learn")
  func failed() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let sets = ["metrics.textfile=opps.prom", #"run.until={"events":5}"#]
    let configuration = try pipeline.load(sets: sets)
    await (try pipeline.makeRun(configuration)).execute()
    let before = try self.samples(configuration)
    await
      (try pipeline.makeRun(
        try pipeline.load(sets: sets, environment: ["SF_CLIENT_SECRET": "wrong"]))).execute()
    let after = try self.samples(configuration)
    for metric in [Metric.positionConfirmed, .newestCommit] {
      #expect(after[metric, "opps", Self.topic] != nil)
      #expect(after[metric, "opps", Self.topic] == before[metric, "opps", Self.topic])
    }
    #expect(after[.lastSuccess, "opps"] == before[.lastSuccess, "opps"])
    #expect(after[.lastExitCode, "opps"] == .number(77))
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    let confirmed = try #require(document?.topics[Self.topic]?.confirmedAt)
    #expect(after[.positionConfirmed, "opps", Self.topic] == .number(Double(confirmed) / 1000))
    await pipeline.org.stop()
  }

  @Test("A file that cannot be written and a port that is taken do not make a run fail")
  func warnings() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let taken = try MetricsServer(
      MetricsAddress(host: "127.0.0.1", port: 0), clock: ProcessClock(), onFailure: { _ in },
      answer: { _ in MetricsResponse(.ok, text: "") })
    let configuration = try pipeline.load(sets: [
      "metrics.textfile=none/opps.prom", "metrics.listen=\(taken.address)",
      #"run.until={"events":5}"#,
    ])
    let messages = Lock<[String]>([])
    let run = try pipeline.makeRun(configuration) { text in messages.withLock { $0.append(text) } }
    await run.execute()
    #expect(run.report.exitCode == .success)
    let said = messages.withLock { $0 }
    let file = "\(configuration.base)/none/opps.prom"
    #expect(said.contains { $0.hasPrefix("metrics.listen cannot be served, and the run") })
    #expect(said.contains { $0.hasPrefix("metrics.textfile, \(file), was not written: ") })
    let warnings = LocalCheck.warnings(configuration)
    #expect(warnings.contains { $0.hasPrefix("attention: the metrics could not be written to ") })
    taken.stop()
    await pipeline.org.stop()
  }

  @Test("A run that another one keeps from running changes no textfile")
  func locked() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let configuration = try pipeline.load(sets: ["metrics.textfile=opps.prom"])
    let lock = try FileCheckpointStore(
      directory: configuration.checkpoint.directory, pipeline: "opps", clock: ProcessClock())
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.reason == EndReason.alreadyRunning.rawValue)
    #expect(configuration.metrics.textfile.map { FilePath.exists($0) } == false)
    withExtendedLifetime(lock) {}
    await pipeline.org.stop()
  }
}
