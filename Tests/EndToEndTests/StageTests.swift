import Testing

@Suite(.serialized) struct StageTests {
  @Test(
    "Filter, set and route make what a model says through kills, and failing expressions dead letters",
    .enabled(if: ProofScript.programs != nil))
  func stages() throws { try ProofScript("stages_proof.py").run() }

  @Test(
    "All stages make what a model says of events and records, in files and tables of every mode, through kills",
    .enabled(if: ProofScript.programs != nil))
  func tables() throws { try ProofScript("stages_tables_proof.py").run() }

  @Test(
    "Every cast makes the values that are written down, in files and tables, and dead letters of the rest",
    .enabled(if: ProofScript.programs != nil))
  func casts() throws { try ProofScript("cast_proof.py").run() }
}
