import Testing

@Suite("Logins", .serialized) struct LoginTests {
  @Test(
    "Every login exports the truth while tokens expire, and a refused login exits with 77",
    .enabled(if: ProofScript.programs != nil))
  func everyLogin() throws { try ProofScript("logins_proof.py").run() }
}
