import Testing

/// `pubsub-etl publish` against the simulator; a client on grpcio and fastavro reads what arrived.
@Suite(.serialized) struct PublishTests {
  private let script = ProofScript("publish_proof.py")

  @Test(
    "Each event is published once or its result says that it is not known",
    .enabled(if: ProofScript.programs != nil))
  func publishes() throws { try self.script.run() }
}
