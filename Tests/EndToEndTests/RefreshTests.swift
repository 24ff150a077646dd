import Testing

/// The real exporter reads fields again that change without events.
@Suite("Fields without events", .serialized) struct RefreshTests {
  private let script = ProofScript("refresh_proof.py")

  @Test(
    "Tables, history and views have every silent change of a formula after kills and events",
    .enabled(if: ProofScript.programs != nil))
  func isCurrent() throws {
    try self.script.run(
      "--seed", "3", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }

  @Test(
    "Fields that no event has are in tables, history and views, through kills and changes of the org",
    .enabled(if: ProofScript.programs != nil))
  func bringsUnsentFields() throws {
    try ProofScript("unsent_fields_proof.py").run(
      "--seed", "5", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }

  @Test(
    "Files and their views have every silent change of a formula after kills and events",
    .enabled(if: ProofScript.programs != nil))
  func isCurrentInFiles() throws {
    try ProofScript("refresh_files_proof.py").run(
      "--seed", "3", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }
}
