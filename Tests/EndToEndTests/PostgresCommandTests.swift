import TestSupport
import Testing

@Suite(.serialized) struct PostgresCommandTests {
  @Test(
    "plan, refold, status and checkpoint do on a database what their help says",
    .enabled(if: ProofScript.programs != nil && PostgresCluster.isAvailable))
  func commands() throws { try ProofScript("commands_proof.py").run("--events", "2000") }
}
