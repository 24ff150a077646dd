import Testing

@Suite("How current a copy is", .serialized) struct FreshnessTests {
  @Test(
    "_freshness of files and tables say the same, and what is so, at each stage of a copy",
    .enabled(if: ProofScript.programs != nil))
  func stages() throws { try ProofScript("freshness_proof.py").run() }
}
