import Checkpoint
import Clocks
import OrgTestSupport
import Pipeline
import PubSubSimulator
import RESTSource
import Testing

@testable import PubSubETL

@Suite("Reading records in a run") struct SnapshotRunTests {
  private static let count = 40

  private func pipeline() async throws -> SimulatedPipeline {
    try await SimulatedPipeline(existing: Self.count)
  }

  /// The objects that a run would read.
  private func wanted(
    _ pipeline: SimulatedPipeline, _ configuration: PipelineConfiguration, _ purpose: RunPurpose
  ) async throws -> [String]? {
    let run = try pipeline.makeRun(configuration)
    return try await Session.open(configuration, clock: ProcessClock()) { session in
      let store = try FileCheckpointStore(
        directory: configuration.checkpoint.directory, pipeline: configuration.name)
      let document = try store.load()
      let succession = try document.map {
        try SinkSuccession($0, sinks: configuration.sinkPlaces, now: run.clock.wallTime)
      }
      let stores = try run.openStores(session, store, document, succession)
      defer { stores.sinks.close() }
      return try await SnapshotRun.make(
        session, sinks: stores.sinks, files: stores.checkpointed, purpose: purpose,
        follows: false, logger: run.logger, wake: {}, onRetry: { failure, _ in throw failure }
      )?.reader.objects.map(\.entity)
    }
  }

  @Test("Files get records only if the pipeline or the command says so, and never by a condition")
  func objects() async throws {
    let pipeline = try await self.pipeline()
    let plain = try pipeline.load()
    let initial = try pipeline.load(sets: ["source.snapshot.mode=initial"])
    let object = [SimulatedPipeline.object]
    #expect(try await self.wanted(pipeline, plain, .export) == nil)
    #expect(try await self.wanted(pipeline, initial, .export) == object)
    #expect(try await self.wanted(pipeline, plain, .snapshot(where: nil)) == object)
    #expect(try await self.wanted(pipeline, plain, .snapshot(where: "x = 1")) == nil)
    await pipeline.org.stop()
  }

  @Test("Every record is read once, and the next run has none to read")
  func reads() async throws {
    let pipeline = try await self.pipeline()
    let configuration = try pipeline.load(sets: ["source.snapshot.mode=initial"])
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.exitCode == .success && run.report.reason == "caught_up")
    #expect(run.report.records.read == Int64(Self.count), "\(run.report.message ?? "")")
    let objects = run.report.records.objects
    #expect(objects.map(\.isComplete) == [true] && objects.map(\.rows) == [Self.count])
    #expect(try await self.wanted(pipeline, configuration, .export) == nil)
    await pipeline.org.stop()
  }

  @Test("An org that refuses to describe an object ends the run with its answer")
  func refused() async throws {
    let pipeline = try await self.pipeline()
    try await pipeline.org.fault(
      #"{"method":"Describe","status":403,"error_code":"API_DISABLED_FOR_ORG","message":"no API","times":9}"#
    )
    let run = try pipeline.makeRun(try pipeline.load(sets: ["source.snapshot.mode=initial"]))
    await run.execute()
    #expect(run.report.exitCode == .refused, "\(run.report.message ?? "")")
    #expect(run.report.reason == "snapshot_stop")
    #expect(run.report.message?.contains("no API") == true)
    await pipeline.org.stop()
  }

  @Test("A signal ends a run whose job does not end, and the records are reported as incomplete")
  func interrupted() async throws {
    let pipeline = try await self.pipeline()
    try await pipeline.org.fault(#"{"method":"BulkCreate","action":"job_stuck"}"#)
    let interruption = Interruption(deadline: nil, clock: ProcessClock())
    let run = try pipeline.makeRun(
      try pipeline.load(sets: ["source.snapshot.mode=initial"]), interruption: interruption
    ) { if $0 == "reading records" { interruption.ask() } }
    await run.execute()
    #expect(run.report.exitCode == .tryAgain && run.report.reason == "signal")
    #expect(run.report.records.objects.map(\.isComplete) == [false])
    await pipeline.org.stop()
  }
}
