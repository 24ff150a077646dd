import Testing

@Suite("Erased records", .serialized) struct EraseTests {
  @Test(
    "No value of erased records is left anywhere or comes back, despite kills at any moment",
    .enabled(if: ProofScript.programs != nil))
  func erases() throws { try ProofScript("erase_proof.py").run(sample: ["--kills", "6"]) }
}
