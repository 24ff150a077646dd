import Testing

@Suite("First pages", .serialized) struct PageTests {
  @Test(
    "README and the pages for newcomers show what the programs do",
    .enabled(if: ProofScript.programs != nil))
  func firstPages() throws { try ProofScript("pages_proof.py").run() }
}
