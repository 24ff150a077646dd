import Testing

@Suite("Logins", .serialized) struct LoginTests {
  @Test(
    "Exports equal the truth with every login and expiring tokens; a refused login exits with 77",
    .enabled(if: ProofScript.programs != nil))
  func everyLogin() throws { try ProofScript("logins_proof.py").run() }
}
