import Testing

/// `pubsub-simulator rehearse`, and the clock that makes it fast.
@Suite("Rehearsals", .serialized) struct RehearsalTests {
  @Test(
    "Every shipped pipeline is rehearsed for a day, and its output equals the published events",
    .enabled(if: ProofScript.programs != nil))
  func rehearsesPipelines() throws {
    try ProofScript("rehearse_proof.py").run("--days", "1", "--every", "6h")
  }
}
