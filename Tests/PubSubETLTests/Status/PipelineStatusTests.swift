import Checkpoint
import Glibc
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Status of a pipeline")
struct PipelineStatusTests {
  private let now = UTCTime.now()
  private let hour: Int64 = 3_600_000

  private func kinds(
    _ state: StateSample, maxAge: Duration? = nil, now: Int64? = nil
  ) throws
    -> [String]
  {
    try PipelineStatus.read(state.configuration, maxAge: maxAge, now: now ?? self.now)
      .problems.map(\.kind)
  }

  @Test("A pipeline that never ran is not healthy, and looking at it makes nothing")
  func neverRun() throws {
    let state = try StateSample()
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["never_run"])
    #expect(status.exitCode == 75)
    #expect(access(state.paths.directory, F_OK) != 0)
    #expect(access(state.output, F_OK) != 0)
  }

  @Test("After a good run positions, files and the run are told, and all is well")
  func healthy() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now - 3 * self.hour)])
    try state.write(
      StateSample.line(0...4) + StateSample.line(5...9, committed: "2026-02-18T00:00:00.000Z")
        + "{\"torn", to: state.output + "/_manifest.ndjson")
    let end = UTCTime.now() + 5
    try LastRun.store(
      state.report(.success, at: end), processID: getpid(), in: state.paths, hiding: SecretMask())
    let status = try PipelineStatus.read(state.configuration, maxAge: .seconds(60))
    #expect(status.problems == [])
    #expect(status.exitCode == 0)
    let sink = try #require(status.sinks.first)
    #expect(sink.files == 2)
    #expect(sink.events == 10)
    #expect(sink.bytes == 200)
    let topic = try #require(status.topics.first)
    #expect(topic.lastCommitTimestamp == "2026-02-18T00:00:00.000Z")
    #expect(topic.position?.resume?.hex == "00aa")
    #expect(status.json["topics"]?.array?.first?["position"]?["next_ordinal"]?.integer == 10)
    #expect(status.json["last_run"]?["reason"]?.string == "caught_up")
    #expect(status.text.contains("goes on after 00aa"))
    #expect(status.text.contains("ages out in 2 d 2"))
    // The torn line is still there: nothing was written.
    #expect(try state.read(state.output + "/_manifest.ndjson").hasSuffix("{\"torn"))
  }

  @Test("A failed run is told with its exit code, one that is going on instead is not")
  func failed() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.refused, reason: "login", at: UTCTime.now() + 5), processID: getpid(),
      in: state.paths, hiding: SecretMask())
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["last_run_failed"])
    #expect(status.exitCode == 77)
    let store = try FileCheckpointStore(directory: state.paths.directory, pipeline: "opps")
    let running = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(running.lock.isHeld == true)
    #expect(running.lock.processID == getpid())
    #expect(running.problems == [])
    withExtendedLifetime(store) {}
  }

  @Test("A run that was killed has taken the lock and left no record")
  func killed() throws {
    let state = try StateSample()
    try state.write("", to: state.paths.lock)
    try LastRun.store(
      state.report(.success, at: self.now - 1000), processID: 1, in: state.paths,
      hiding: SecretMask())
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    #expect(try self.kinds(state) == ["killed"])
  }

  @Test("An old commit and an ageing position are problems")
  func old() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    #expect(try self.kinds(state, maxAge: .seconds(600)) == [])
    #expect(try self.kinds(state, maxAge: .seconds(600), now: self.now + self.hour) == ["old"])
    #expect(try self.kinds(state, now: self.now + 48 * self.hour) == [])
    #expect(try self.kinds(state, now: self.now + 49 * self.hour) == ["ageing_out"])
    #expect(try self.kinds(state, now: self.now + 73 * self.hour) == ["aged_out"])
  }

  @Test("Files without a checkpoint are lost state")
  func lost() throws {
    let state = try StateSample()
    try state.write(StateSample.line(0...4), to: state.output + "/_manifest.ndjson")
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["lost_state"])
    #expect(status.exitCode == 65)
  }
}
