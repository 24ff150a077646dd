import TestSupport
import Testing

@Suite("Commands on a database", .serialized) struct PostgresCommandTests {
  @Test(
    "plan, rebuild, status and checkpoint do what their help says with a database",
    .enabled(if: ProofScript.programs != nil && PostgresCluster.isAvailable))
  func commands() throws { try ProofScript("commands_proof.py").run("--events", "2000") }

  @Test(
    "tail shows the newest changes of files and tables, and changes as they arrive",
    .enabled(if: ProofScript.programs != nil && PostgresCluster.isAvailable))
  func tail() throws { try ProofScript("tail_proof.py").run() }
}
