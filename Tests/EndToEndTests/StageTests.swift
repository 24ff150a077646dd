import Testing

@Suite(.serialized) struct StageTests {
  @Test(
    "Filter, set and route make what a model says through kills, and failing expressions dead letters",
    .enabled(if: ProofScript.programs != nil))
  func stages() throws { try ProofScript("stages_proof.py").run() }
}
