import Testing

/// The real exporter compares its copy with a simulated org: what was planted is found, and nothing else.
@Suite("Verify", .serialized) struct VerifyTests {
  private let script = ProofScript("verify_proof.py")

  @Test(
    "verify finds and repairs planted differences, and changes in transit are no drift",
    .enabled(if: ProofScript.programs != nil),
    arguments: [["both", "mark"], ["current", "remove"]])
  func findsPlantedDifferences(settings: [String]) throws {
    try self.script.run(
      "--mode", settings[0], "--delete", settings[1], "--existing", "500", "--events", "900",
      "--live-runs", "2", "--seed", "3")
  }

  @Test(
    "verify finds differences planted in files, and names damaged files",
    .enabled(if: ProofScript.programs != nil),
    arguments: ["files", "both"])
  func findsPlantedDifferencesInFiles(sinks: String) throws {
    try ProofScript("verify_files_proof.py").run(
      "--sinks", sinks, "--existing", "500", "--events", "900", "--live-runs", "2", "--seed", "3")
  }
}
