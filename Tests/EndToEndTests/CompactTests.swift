import Testing

@Suite("Compaction of small files", .serialized) struct CompactTests {
  @Test(
    "Readers find each line once while files are compacted, killed at any moment and completed",
    .enabled(if: ProofScript.programs != nil))
  func compacts() throws { try ProofScript("compact_proof.py").run(sample: ["--kills", "6"]) }
}
