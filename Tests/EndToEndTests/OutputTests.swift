import Testing

@Suite(.serialized) struct OutputTests {
  @Test(
    "Lost output ends a run and can be accepted; a renamed pipeline is noticed; modes are as said",
    .enabled(if: ProofScript.programs != nil))
  func lostOutput() throws { try ProofScript("output_proof.py").run() }
}
