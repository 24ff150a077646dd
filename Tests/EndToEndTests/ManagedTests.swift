import Testing

/// Delivery by ManagedSubscribe. Needs `PUBSUB_TEST_PROGRAMS`, see `ProofScript`.
@Suite("Managed subscriptions") struct ManagedTests {
  private let script = ProofScript("managed_proof.py")

  @Test(
    "Files hold every event once, wherever the service's position is",
    .enabled(if: ProofScript.programs != nil))
  func files() throws { try self.script.run("--kills", "4", sample: ["--kills", "2"]) }

  @Test(
    "Tables hold every event once, wherever the service's position is",
    .enabled(if: ProofScript.programs != nil))
  func tables() throws {
    try self.script.run(
      "--sink", "postgres", "--kills", "4", "--seed", "2", "--only",
      "batch,behind,lost,ahead,following,kills", sample: ["--kills", "2"])
  }
}
