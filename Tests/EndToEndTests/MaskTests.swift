import Testing

@Suite("Masks", .serialized) struct MaskTests {
  @Test(
    "Masked values are in no output or dead letter, and letters open only with their key",
    .enabled(if: ProofScript.programs != nil))
  func masked() throws { try ProofScript("mask_proof.py").run() }

  @Test(
    "Fields that the org classifies are masked, also those added during a stream",
    .enabled(if: ProofScript.programs != nil))
  func classified() throws { try ProofScript("classification_proof.py").run() }
}
