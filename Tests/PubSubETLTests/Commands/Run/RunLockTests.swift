import ArgumentParser
import Checkpoint
import Clocks
import Logging
import Testing

@testable import PubSubETL

@Suite("Waiting for another run")
struct RunLockTests {
  @Test("The wait for another run ends with --max-duration")
  func maxDuration() async throws {
    let state = try StateSample(sets: ["run.if_running=wait"])
    let other = try FileCheckpointStore(directory: state.paths.directory, pipeline: "opps")
    let options = try RunOptions.parse(["--max-duration", "50ms"])
    let run = PipelineRun(
      state.configuration, options: options, purpose: .export,
      interruption: Interruption(deadline: .now + .milliseconds(50), clock: ProcessClock()),
      clock: ProcessClock(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, progress: nil)
    await run.execute()
    #expect(run.report.exitCode == .tryAgain)
    #expect(run.report.reason == "already_running")
    withExtendedLifetime(other) {}
  }
}
