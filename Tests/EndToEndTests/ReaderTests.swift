import Testing

@Suite(.serialized) struct ReaderTests {
  @Test(
    "DuckDB, pandas and polars read the truth, and the fold in README gives the current state",
    .enabled(if: ProofScript.programs != nil))
  func readTheTruth() throws { try ProofScript("readers_proof.py").run("--events", "20000") }
}
