import Testing

/// The real exporter copies only some of the records that an org has.
@Suite("Only some records", .serialized) struct SubsetTests {
  private let script = ProofScript("subset_proof.py")

  @Test(
    "Copies of only some records are exact after kills and many changes",
    .enabled(if: ProofScript.programs != nil))
  func isLimited() throws {
    try self.script.run(
      "--seed", "3", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }

  private let filesScript = ProofScript("subset_files_proof.py")

  @Test(
    "Files of only some records are exact after kills and many changes",
    .enabled(if: ProofScript.programs != nil))
  func isLimitedInFiles() throws {
    try self.filesScript.run(
      "--seed", "3", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }
}
