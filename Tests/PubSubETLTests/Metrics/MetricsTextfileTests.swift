import Glibc
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Textfile of metrics") struct MetricsTextfileTests {
  private let directory: TemporaryDirectory
  private let file: MetricsTextfile

  init() throws {
    self.directory = try TemporaryDirectory()
    self.file = MetricsTextfile(
      path: "\(self.directory.path)/p.prom", pipeline: "p", topics: ["/data/A"], sinks: ["files"])
  }

  private func samples(_ count: Int) -> MetricSamples {
    var samples = MetricSamples()
    samples.set(.events, "p", "/data/A", to: count)
    return samples
  }

  private func write(_ text: String) throws {
    let stream = try #require(fopen(self.file.path, "w"))
    #expect(text.isEmpty || fputs(text, stream) >= 0)
    fclose(stream)
  }

  private func text() throws -> String {
    String(decoding: try TextFile.read(self.file.path), as: UTF8.self)
  }

  private func count() throws -> MetricSamples.Value? {
    try MetricSamples(reading: Array(self.text().utf8), pipeline: "p")[.events, "p", "/data/A"]
  }

  @Test("After many runs the file has the sums, is readable by others, and is alone")
  func sums() throws {
    for run in 1...100 { #expect(try self.file.add(self.samples(run)) == nil) }
    #expect(try self.count() == .number(5050))
    var status = stat()
    #expect(stat(self.file.path, &status) == 0 && status.st_mode & 0o777 == 0o644)
    #expect(opendir("\(self.directory.path)/.p.prom.tmp") == nil && errno == ENOENT)
  }

  @Test("Topics and sinks that the pipeline file does not have any more are not kept")
  func kept() throws {
    var samples = self.samples(1)
    samples.set(.events, "p", "/data/gone", to: 1)
    samples.set(.sinkRows, "p", "gone", to: 1)
    samples.set(.storeSeconds, "p", "gone", "write", to: 1)
    samples.set(.storeSeconds, "p", CheckpointedStore.name, "write", to: 1)
    samples.set(.buildInfo, "0.0.1", to: 1)
    samples.set(.retries, "p", "topic", "no word", to: 1)
    samples.set(.retries, "p", "topic", "sfdc.error-1", to: 1)
    _ = try self.file.add(samples)
    _ = try self.file.add(self.samples(1))
    let text = try self.text()
    #expect(!text.contains("gone") && !text.contains("0.0.1") && !text.contains("no word"))
    #expect(text.contains("sfdc.error-1") && text.contains(CheckpointedStore.name))
  }

  @Test("A damaged file is replaced, and the run says that counters begin again")
  func damaged() throws {
    for text in ["", "# HELP pubsub_etl_events_total x\npubsub_etl_events_total{pipeline"] {
      _ = try self.file.add(self.samples(1))
      try self.write(text)
      let restart = try self.file.add(self.samples(4))
      #expect(restart?.hasPrefix("line 2 of ") == (text.isEmpty ? nil : true))
      #expect(try self.count() == .number(4))
    }
  }

  @Test(
    "A file of another pipeline, or one that is something else, stays as it is",
    arguments: [
      "pubsub_etl_events_total{pipeline=\"p\",topic=\"/data/A\"} 1\n", "up 1\n", "secret",
      "# HELP pubsub_etl_commits_total x\npubsub_etl_commits_total{pipeline=\"other\"} 5\n",
    ])
  func foreign(text: String) throws {
    try self.write(text)
    let failure = #expect(throws: MetricsTextfile.Failure.self) {
      try self.file.add(self.samples(1))
    }
    #expect(try self.text() == text)
    #expect(
      failure?.description.hasPrefix(
        text.contains("other") ? "it has the metrics of pipeline 'other'" : "it has something else")
        == true)
  }

  @Test("A directory that is not there is an error that names the file")
  func missing() {
    let file = MetricsTextfile(
      path: "\(self.directory.path)/none/p.prom", pipeline: "p", topics: [], sinks: [])
    let failure = #expect(throws: MetricsTextfile.Failure.self) { try file.add(self.samples(1)) }
    #expect(failure?.description.contains("none/.p.prom.tmp") == true)
  }
}
