import Testing

@Suite("Output", .serialized) struct OutputTests {
  @Test(
    "Lost output ends a run and can be accepted, and a renamed pipeline is noticed",
    .enabled(if: ProofScript.programs != nil))
  func lostOutput() throws { try ProofScript("output_proof.py").run() }

  @Test(
    "Lines on standard output equal those of files, also after closed pipes and kills",
    .enabled(if: ProofScript.programs != nil))
  func standardOutput() throws { try ProofScript("stdout_proof.py").run() }
}
