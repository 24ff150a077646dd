import Foundation
import TestSupport
import Testing

/// The real exporter under the shim of `Fixtures/faults`, at a sample of its system calls; the
/// script without `--sample` takes them all.
@Suite(.serialized) struct FaultTests {
  static let programs = ExportTests.programs

  private func prove(_ arguments: String...) throws {
    let programs = try #require(Self.programs)
    let directory = try TemporaryDirectory()
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/faults/fault_proof.py").path
    try runProgram(
      ["python3", script, "--programs", programs, "--work", directory.path, "--jobs", "24"]
        + arguments,
      showsErrors: true)
  }

  @Test(
    "Ended at system calls, with and without a cut of the power, the next run completes",
    .enabled(if: programs != nil))
  func survivesCrashes() throws {
    try self.prove("--modes", "crash,power,again", "--sample", "30", "--seed", "3")
  }

  @Test(
    "A failing disk ends the run with 74 and loses nothing",
    .enabled(if: programs != nil))
  func survivesFailingDisks() throws {
    try self.prove("--modes", "fail,disk", "--sample", "30", "--seed", "4")
  }
}
