import Testing

/// The real exporter under the shim of `Fixtures/faults`, at a sample of its system calls; the
/// script without `--sample` takes them all.
@Suite("Faults", .serialized) struct FaultTests {
  private let script = ProofScript("fault_proof.py", in: "faults")

  @Test(
    "A run killed at a system call, with or without a power cut, is completed by the next",
    .enabled(if: ProofScript.programs != nil))
  func survivesCrashes() throws {
    try self.script.run(
      "--jobs", "24", "--modes", "crash,power,again", "--sample", "30", "--seed", "3")
  }

  @Test(
    "A run that writes on another thread is completed by the next, whatever call it is killed or fails at",
    .enabled(if: ProofScript.programs != nil))
  func survivesCrashesOfTwoThreads() throws {
    try self.script.run(
      "--jobs", "24", "--threads", "2", "--commit", "600", "--events", "2500", "--sample", "12",
      "--seed", "5")
  }

  @Test(
    "A failing disk ends the run with exit code 74 and loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func survivesFailingDisks() throws {
    try self.script.run("--jobs", "24", "--modes", "fail,disk", "--sample", "30", "--seed", "4")
  }

  @Test(
    "The configured reserve of the org's allowance remains, and a spent allowance loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func keepsAllowance() throws { try ProofScript("allowance_proof.py").run() }

  @Test(
    "Storms of scripted faults lose and repeat nothing", .enabled(if: ProofScript.programs != nil))
  func survivesStorms() throws { try ProofScript("storm_proof.py").run("--storms", "4") }

  @Test(
    "A sample of the fault matrix ends with documented exit codes and correct output",
    .enabled(if: ProofScript.programs != nil))
  func survivesMatrix() throws {
    try ProofScript("fault_matrix_proof.py").run("--sample", "8", "--seed", "3")
  }

  @Test(
    "A run that gets no event loop or thread recovers, or exits with 75 and names the call",
    .enabled(if: ProofScript.programs != nil))
  func namesRefusedCalls() throws {
    // Calls of the Swift runtime, which traps when it is refused an event loop, are not counted.
    // They can be told from the program's only where it is a library.
    try ProofScript("refusal_proof.py", in: "faults").run(programs: ProofScript.sharedPrograms)
  }
  @Test(
    "Under a low limit of open files, commands work or exit with 75 and name the limit",
    .enabled(if: ProofScript.programs != nil))
  func namesTheLimitOfOpenFiles() throws {
    try ProofScript("descriptors_proof.py", in: "faults").run()
  }

  @Test(
    "Preloaded libraries, unread messages, closed terminals and a low limit of threads stop no run silently",
    .enabled(if: ProofScript.programs != nil))
  func survivesSurroundings() throws { try ProofScript("process_proof.py", in: "faults").run() }
}
