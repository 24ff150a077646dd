import Testing

@Suite("Stages", .serialized) struct StageTests {
  @Test(
    "Filter, set and route agree with a model despite kills, and failures become dead letters",
    .enabled(if: ProofScript.programs != nil))
  func stages() throws { try ProofScript("stages_proof.py").run() }

  @Test(
    "All stages give what a model gives, in files and tables of every mode, despite kills",
    .enabled(if: ProofScript.programs != nil))
  func tables() throws { try ProofScript("stages_tables_proof.py").run() }

  @Test(
    "Every cast gives the listed values in files and tables, and dead letters for the rest",
    .enabled(if: ProofScript.programs != nil))
  func casts() throws { try ProofScript("cast_proof.py").run() }
}
