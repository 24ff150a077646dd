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
}
