import Testing

/// The real exporter under the shim of `Fixtures/faults`, at a sample of its system calls; the
/// script without `--sample` takes them all.
@Suite(.serialized) struct FaultTests {
  private let script = ProofScript("fault_proof.py", in: "faults")

  @Test(
    "Ended at system calls, with and without a cut of the power, the next run completes",
    .enabled(if: ProofScript.programs != nil))
  func survivesCrashes() throws {
    try self.script.run(
      "--jobs", "24", "--modes", "crash,power,again", "--sample", "30", "--seed", "3")
  }

  @Test(
    "A failing disk ends the run with 74 and loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func survivesFailingDisks() throws {
    try self.script.run("--jobs", "24", "--modes", "fail,disk", "--sample", "30", "--seed", "4")
  }

  @Test(
    "What is to be left of the org's allowance is left, and a spent allowance loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func keepsAllowance() throws { try ProofScript("allowance_proof.py").run() }

  @Test(
    "Storms of faults from files end with the truth", .enabled(if: ProofScript.programs != nil))
  func survivesStorms() throws { try ProofScript("storm_proof.py").run("--storms", "4") }

  @Test(
    "A sample of the fault matrix: exit codes as documented, bounded calls, and in the end the truth",
    .enabled(if: ProofScript.programs != nil))
  func survivesMatrix() throws {
    try ProofScript("fault_matrix_proof.py").run("--sample", "8", "--seed", "3")
  }

  @Test(
    "Refused an event loop or a thread, a run ends with 75 and names the call, or makes up for it",
    .enabled(if: ProofScript.programs != nil))
  func namesRefusedCalls() throws {
    // Calls of the Swift runtime, which traps when it is refused an event loop, are not counted.
    // They can be told from the program's only where it is a library.
    try ProofScript("refusal_proof.py", in: "faults").run(programs: ProofScript.sharedPrograms)
  }
}
