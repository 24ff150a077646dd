import Testing

@Suite("A year of an org", .serialized) struct YearTests {
  @Test(
    "A copy stays right through admins, joining objects, erasures and restored back-ups",
    .enabled(if: ProofScript.programs != nil))
  func staysRight() throws {
    try ProofScript("year_proof.py").run(
      "--seed", "2", sample: ["--fortnights", "4", "--actions", "30", "--existing", "60"])
  }
}
