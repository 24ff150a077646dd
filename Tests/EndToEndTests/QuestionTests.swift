import Testing

/// What the page about tables promises, asked of a copy.
@Suite("Questions of a sales manager", .serialized) struct QuestionTests {
  @Test(
    "Queries of at most ten lines from the page about tables answer as the org does",
    .enabled(if: ProofScript.programs != nil))
  func areAnswered() throws { try ProofScript("questions_proof.py").run() }
}
