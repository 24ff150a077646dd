import Testing

@Suite("Exports to files", .serialized) struct ExportTests {
  @Test(
    "Files equal the truth on single topics, mixed and enriched channels",
    .enabled(if: ProofScript.programs != nil))
  func equalsTruth() throws {
    try ProofScript("export_proof.py").run("--events", "20000", sample: ["--events", "5000"])
  }

  @Test(
    "Decoding and encoding allocate nothing per event",
    .enabled(if: ProofScript.programs != nil))
  func allocatesNothingPerEvent() throws {
    try ProofScript("allocation_proof.py", in: "allocations").run()
  }

  @Test(
    "Files equal the truth after kills at random moments, renames and manifest lines",
    .enabled(if: ProofScript.programs != nil))
  func survivesKills() throws {
    try ProofScript("export_proof.py").run("--events", "5000", "--kills", "12", "--seed", "2")
  }
}
