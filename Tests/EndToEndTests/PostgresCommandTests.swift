import TestSupport
import Testing

@Suite("Commands on a database", .serialized) struct PostgresCommandTests {
  @Test(
    "plan, rebuild, status and checkpoint do on a database what their help says",
    .enabled(if: ProofScript.programs != nil && PostgresCluster.isAvailable))
  func commands() throws { try ProofScript("commands_proof.py").run("--events", "2000") }
}
