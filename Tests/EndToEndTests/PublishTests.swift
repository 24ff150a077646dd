import Testing

/// `pubsub-etl publish` against the simulator; a client on grpcio and fastavro reads what arrived.
@Suite("Publishing", .serialized) struct PublishTests {
  private let script = ProofScript("publish_proof.py")

  @Test(
    "Each event is published once, or its result says that the outcome is unknown",
    .enabled(if: ProofScript.programs != nil))
  func publishes() throws { try self.script.run() }
}
