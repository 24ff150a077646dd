import Testing

/// The real exporter into private PostgreSQL servers.
@Suite("Exports to PostgreSQL", .serialized) struct PostgresTests {
  private let script = ProofScript("postgres_proof.py")

  @Test(
    "Tables and files equal the truth on single topics, mixed and enriched channels",
    .enabled(if: ProofScript.programs != nil))
  func equalsTruth() throws {
    try self.script.run("--events", "10000", "--files", sample: ["--events", "3000"])
  }

  @Test(
    "Tables and files equal the truth after kills of exporter and server and lost COMMIT answers",
    .enabled(if: ProofScript.programs != nil))
  func survivesKills() throws {
    try self.script.run(
      "--events", "2000", "--kills", "3", "--server-kills", "1", "--commit-lost", "2", "--files",
      "--pipelines", "single,enriched", "--seed", "2")
  }

  @Test(
    "A run survives an outage of its database, obeys signals meanwhile, and loses nothing",
    .enabled(if: ProofScript.programs != nil))
  func outlivesOutages() throws { try ProofScript("outage_proof.py").run() }

  @Test(
    "A run waits for failing service, login, database and topics as the pipeline file says",
    .enabled(if: ProofScript.programs != nil))
  func waitsAsConfigured() throws { try ProofScript("retry_proof.py").run() }

  @Test(
    "Signals during login, schema requests and commits lose nothing and repeat nothing",
    .enabled(if: ProofScript.programs != nil))
  func hearsSignals() throws { try ProofScript("signals_proof.py").run() }

  @Test(
    "A run resumes the checkpoint, open files and tables of an earlier version",
    .enabled(if: ProofScript.programs != nil))
  func resumesEarlierState() throws { try ProofScript("earlier_state_proof.py").run() }

  @Test(
    "Tables equal the truth through PgBouncer, schema changes, second owners and re-reads",
    .enabled(if: ProofScript.programs != nil))
  func survivesPooling() throws {
    try self.script.run(
      "--events", "2000", "--pgbouncer", "--schema-change", "--second-owner", "--reset",
      "--pipelines", "single", "--seed", "3")
  }

  @Test(
    "PostgreSQL 16 gives the same tables, with and without kills",
    .enabled(if: ProofScript.programs != nil && ProofScript.hasPackagedPostgres))
  func nextVersion() throws {
    try self.script.run(
      "--events", "3000", "--pgserver", "--kills", "2", "--server-kills", "1", "--files",
      "--pipelines", "single,channel", "--seed", "5")
  }

  @Test(
    "Deleted records are removed and do not come back",
    .enabled(if: ProofScript.programs != nil))
  func removesDeleted() throws {
    try self.script.run(
      "--events", "5000", "--delete", "remove", "--reset", "--kills", "2", "--pipelines",
      "single,middle", "--seed", "4", sample: ["--events", "2000"])
  }

  @Test(
    "A history table alone and a current table alone equal the truth",
    .enabled(if: ProofScript.programs != nil), arguments: ["history", "current"])
  func oneOfBoth(mode: String) throws {
    try self.script.run(
      "--events", "3000", "--mode", mode, "--reset", "--pipelines", "channel")
  }

  @Test(
    "Every step of the page about tables works, from an empty database to its last query",
    .enabled(if: ProofScript.programs != nil))
  func followsThePage() throws { try ProofScript("reporting_proof.py").run() }

  @Test(
    "Two orgs in one database, a promoted replica and a restored back-up are what the page says",
    .enabled(if: ProofScript.programs != nil))
  func keepsWarehouse() throws { try ProofScript("warehouse_proof.py").run() }

  @Test("The view of changes has every change with its values, and no wrong one")
  func showsChanges() throws { try ProofScript("changes_proof.py").run("--events", "1000") }
}
