import Testing

@Suite("Task pages", .serialized) struct PageTests {
  @Test(
    "Every example of README and of the task pages works",
    .enabled(if: ProofScript.programs != nil))
  func examples() throws { try ProofScript("pages_proof.py").run() }
}
