import Testing

@Suite("Dead letters", .serialized) struct DeadLetterTests {
  @Test(
    "Dead letters are retried exactly once despite kills, and files and tables equal the truth",
    .enabled(if: ProofScript.programs != nil))
  func comeBack() throws { try ProofScript("dead_letters_proof.py").run("--step", "9") }
}
