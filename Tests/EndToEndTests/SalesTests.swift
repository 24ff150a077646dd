import Testing

@Suite("The simulated sales team", .serialized) struct SalesTests {
  @Test(
    "A copy of the sales team equals the org, and scripts/sales-report answers from it",
    .enabled(if: ProofScript.programs != nil))
  func report() throws { try ProofScript("sales_proof.py").run() }
}
