import Testing

/// The real exporter into private PostgreSQL servers.
@Suite(.serialized) struct PostgresTests {
  private let script = ProofScript("postgres_proof.py")

  @Test(
    "Tables and files equal the truth on single topics, mixed and enriched channels",
    .enabled(if: ProofScript.programs != nil))
  func equalsTruth() throws { try self.script.run("--events", "10000", "--files") }

  @Test(
    "Exporter and server killed, answers to COMMIT lost: tables and files equal the truth",
    .enabled(if: ProofScript.programs != nil))
  func survivesKills() throws {
    try self.script.run(
      "--events", "2000", "--kills", "3", "--server-kills", "1", "--commit-lost", "2", "--files",
      "--pipelines", "single,enriched", "--seed", "2")
  }

  @Test(
    "A run whose database goes away goes on, hears signals, and loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func outlivesOutages() throws { try ProofScript("outage_proof.py").run() }

  @Test(
    "Service, login, database and topics that fail are waited for as the pipeline file says",
    .enabled(if: ProofScript.programs != nil))
  func waitsAsConfigured() throws { try ProofScript("retry_proof.py").run() }

  @Test(
    "Signals during login, schemas and commits lose nothing and repeat nothing",
    .enabled(if: ProofScript.programs != nil))
  func hearsSignals() throws { try ProofScript("signals_proof.py").run() }

  @Test(
    "What an earlier version has left is gone on from: checkpoint, files in progress, tables",
    .enabled(if: ProofScript.programs != nil))
  func resumesEarlierState() throws { try ProofScript("earlier_state_proof.py").run() }

  @Test(
    "Through PgBouncer, over a change of schemas, beside second owners, read again from the start",
    .enabled(if: ProofScript.programs != nil))
  func survivesPooling() throws {
    try self.script.run(
      "--events", "2000", "--pgbouncer", "--schema-change", "--second-owner", "--reset",
      "--pipelines", "single", "--seed", "3")
  }

  @Test(
    "The same on PostgreSQL 16, killed or not",
    .enabled(if: ProofScript.programs != nil && ProofScript.hasPackagedPostgres))
  func nextVersion() throws {
    try self.script.run(
      "--events", "3000", "--pgserver", "--kills", "2", "--server-kills", "1", "--files",
      "--pipelines", "single,channel", "--seed", "5")
  }

  @Test(
    "Deleted records are removed and stay so",
    .enabled(if: ProofScript.programs != nil))
  func removesDeleted() throws {
    try self.script.run(
      "--events", "5000", "--delete", "remove", "--reset", "--kills", "2", "--pipelines",
      "single,middle", "--seed", "4")
  }

  @Test(
    "History alone and the current state alone equal the truth",
    .enabled(if: ProofScript.programs != nil), arguments: ["history", "current"])
  func oneOfBoth(mode: String) throws {
    try self.script.run(
      "--events", "3000", "--mode", mode, "--reset", "--pipelines", "channel")
  }

  @Test(
    "The page for those who report leads from an empty database to its last query",
    .enabled(if: ProofScript.programs != nil))
  func followsThePage() throws { try ProofScript("reporting_proof.py").run() }
}
