import Testing

@Suite("dbt", .serialized) struct DbtTests {
  @Test(
    "The dbt project and the views for Fivetran's package have the numbers of the org",
    .enabled(if: ProofScript.programs != nil && ProofScript.hasDbt))
  func builds() throws { try ProofScript("dbt_proof.py").run() }
}
