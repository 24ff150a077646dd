import Testing

/// The real exporter keeps objects current that send it no change events.
@Suite("Objects without a stream", .serialized) struct LookupTests {
  private let script = ProofScript("lookups_proof.py")

  @Test(
    "Tables and files equal the org after changes, deletions and kills between and during reads",
    .enabled(if: ProofScript.programs != nil))
  func isCurrent() throws {
    try self.script.run(
      "--seed", "3", sample: ["--existing", "600", "--rounds", "2", "--kills", "3"])
  }
}
