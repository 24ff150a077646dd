import Testing

/// The real exporter compares its copy with a simulated org: what was planted is found, and nothing else.
@Suite("Verify", .serialized) struct VerifyTests {
  private static let sample = [
    "--existing", "500", "--events", "900", "--live-runs", "1", "--visibility-wait", "1",
    "--seed", "3",
  ]

  @Test(
    "verify finds and repairs planted differences, and changes in transit do not count as drift",
    .enabled(if: ProofScript.programs != nil),
    arguments: [["both", "mark"], ["current", "remove"]])
  func findsPlantedDifferences(settings: [String]) throws {
    try ProofScript("verify_proof.py").run(
      "--mode", settings[0], "--delete", settings[1], sample: Self.sample)
  }

  @Test(
    "verify finds differences planted in files, and names damaged files",
    .enabled(if: ProofScript.programs != nil),
    arguments: ["files", "both"])
  func findsPlantedDifferencesInFiles(sinks: String) throws {
    try ProofScript("verify_files_proof.py").run("--sinks", sinks, sample: Self.sample)
  }

  @Test(
    "A copy stays right while an admin adds, converts, renames, hides and deletes fields between runs",
    .enabled(if: ProofScript.programs != nil))
  func staysRightUnderAdministration() throws {
    try ProofScript("administration_proof.py").run(
      sample: ["--actions", "30", "--existing", "60", "--seed", "4"])
  }

  @Test(
    "Files have the values of new fields, or status and verify name the fields that they lack",
    .enabled(if: ProofScript.programs != nil))
  func newFieldsInFiles() throws {
    try ProofScript("new_fields_proof.py").run(
      sample: ["--existing", "50", "--events", "300", "--seed", "1"])
  }
}
