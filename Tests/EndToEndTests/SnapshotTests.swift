import Testing

/// The real exporter copies an org that has records from before, reads again what events do not tell,
/// and is equal to it at the end.
@Suite("A complete copy", .serialized) struct SnapshotTests {
  private let script = ProofScript("snapshot_proof.py")

  @Test(
    "Tables are complete after kills of exporter and server during a snapshot",
    .enabled(if: ProofScript.programs != nil), arguments: ["both", "current"])
  func survivesKills(mode: String) throws {
    try self.script.run(
      "--mode", mode, "--existing", "1500", "--events", "1500", "--rate", "300", "--kills", "3",
      "--server-kills", "1", "--seed", "7")
  }

  @Test(
    "Files are complete after kills during a snapshot, alone and beside tables",
    .enabled(if: ProofScript.programs != nil), arguments: ["--files", "--files-and-postgres"])
  func filesSurviveKills(sinks: String) throws {
    try self.script.run(
      sinks, "--existing", "1500", "--events", "1500", "--rate", "300", "--kills", "3", "--seed",
      "9")
  }

  @Test(
    "Files are complete after lost jobs, and hidden fields are named",
    .enabled(if: ProofScript.programs != nil))
  func filesOutliveJobs() throws {
    try self.script.run(
      "--files", "--existing", "4000", "--events", "900", "--rate", "100", "--kills", "3",
      "--hidden-field", "Opportunity.Amount", "--fault",
      #"{"action": "job_vanished", "method": "BulkCreate", "after_events": 1, "times": 3}"#,
      "--seed", "10")
  }

  @Test(
    "Gaps, overflows, wildcards and lost differences are repaired",
    .enabled(if: ProofScript.programs != nil), arguments: ["both", "current"])
  func repairs(mode: String) throws {
    try self.script.run(
      "--mode", mode, "--existing", "400", "--events", "1500", "--rate", "300", "--repair",
      "--simulator-options", "--gaps 0.1 --overflows 0.01 --wildcards 0.01 --diffs 0.1", "--seed",
      "8")
  }
}
