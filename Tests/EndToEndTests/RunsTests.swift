import Testing

@Suite("Memory of runs", .serialized) struct RunsTests {
  @Test(
    "The ledger and the page have what runs have reported, also of runs that were refused or killed",
    .enabled(if: ProofScript.programs != nil))
  func memory() throws {
    try ProofScript("runs_proof.py").run()
  }
}
