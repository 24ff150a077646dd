import Testing

@Suite("Metrics", .serialized) struct MetricsTests {
  @Test(
    "A follower that is scraped among hostile clients has the counts of the truth, and a textfile those of the reports",
    .enabled(if: ProofScript.programs != nil))
  func scrapes() throws {
    try ProofScript("metrics_proof.py").run(sample: ["--runs", "8"])
  }
}
