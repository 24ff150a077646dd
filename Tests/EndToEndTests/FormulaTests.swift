import Testing

/// The real exporter makes views that compute the org's formulas.
@Suite("Formulas as views", .serialized) struct FormulaTests {
  private let script = ProofScript("formulas_proof.py")

  @Test(
    "Views of formulas have the org's values while records change",
    .enabled(if: ProofScript.programs != nil))
  func equal() throws {
    try self.script.run("--seed", "4", sample: ["--existing", "300", "--rounds", "2"])
  }
}
