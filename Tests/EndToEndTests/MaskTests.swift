import Testing

@Suite(.serialized) struct MaskTests {
  @Test(
    "Masked values are in no file, table, log, report or dead letter; letters open with their key only",
    .enabled(if: ProofScript.programs != nil))
  func masked() throws { try ProofScript("mask_proof.py").run() }

  @Test(
    "What the org classifies is masked, also a field that is added and classified in mid-stream",
    .enabled(if: ProofScript.programs != nil))
  func classified() throws { try ProofScript("classification_proof.py").run() }
}
