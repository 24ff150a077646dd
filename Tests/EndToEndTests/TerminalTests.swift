import Testing

@Suite(.serialized) struct TerminalTests {
  @Test(
    "No output holds a secret or steers a terminal; failures and steps are told",
    .enabled(if: ProofScript.programs != nil))
  func terminal() throws { try ProofScript("terminal_proof.py").run() }

  @Test(
    "Logs tell what happens, in every format, and hold no secret and no value of a record",
    .enabled(if: ProofScript.programs != nil))
  func logs() throws { try ProofScript("log_proof.py").run() }
}
