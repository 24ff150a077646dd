import Testing

@Suite("Terminals and logs", .serialized) struct TerminalTests {
  @Test(
    "No output shows a secret or controls the terminal, and failures and steps are reported",
    .enabled(if: ProofScript.programs != nil))
  func terminal() throws { try ProofScript("terminal_proof.py").run() }

  @Test(
    "Logs report events in every format, without secrets and record values",
    .enabled(if: ProofScript.programs != nil))
  func logs() throws { try ProofScript("log_proof.py").run() }
}
