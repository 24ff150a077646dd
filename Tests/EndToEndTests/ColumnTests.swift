import Testing

@Suite("Columns that stages name", .serialized) struct ColumnTests {
  @Test(
    "A misspelt column in a stage ends the run before anything is written",
    .enabled(if: ProofScript.programs != nil))
  func misspeltColumns() throws { try ProofScript("columns_proof.py").run() }
}
