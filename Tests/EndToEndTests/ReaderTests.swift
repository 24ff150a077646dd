import Testing

@Suite("Readers of files", .serialized) struct ReaderTests {
  @Test(
    "DuckDB, pandas and polars read what was published, and the view gives the current state",
    .enabled(if: ProofScript.programs != nil))
  func readTheTruth() throws {
    try ProofScript("readers_proof.py").run("--events", "20000", sample: ["--events", "5000"])
  }
}
