import Testing

/// The real exporter compares its copy with a simulated org: what was planted is found, and nothing else.
@Suite("Verify", .serialized) struct VerifyTests {
  private let script = ProofScript("verify_proof.py")

  @Test(
    "Planted differences are found and mended, changes on their way are no drift",
    .enabled(if: ProofScript.programs != nil),
    arguments: [["both", "mark"], ["current", "remove"]])
  func findsPlantedDifferences(settings: [String]) throws {
    try self.script.run(
      "--mode", settings[0], "--delete", settings[1], "--existing", "500", "--events", "900",
      "--live-runs", "2", "--seed", "3")
  }

  @Test(
    "Differences planted in files are found, alone and beside tables; damaged files are named",
    .enabled(if: ProofScript.programs != nil),
    arguments: ["files", "both"])
  func findsPlantedDifferencesInFiles(sinks: String) throws {
    try ProofScript("verify_files_proof.py").run(
      "--sinks", sinks, "--existing", "500", "--events", "900", "--live-runs", "2", "--seed", "3")
  }
}
