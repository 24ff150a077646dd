import PubSubAPI
import SalesforceREST
import Testing

@testable import PubSubETL

@Suite("Checks of a managed subscription")
struct ManagedCheckTests {
  private static let record = ManagedSubscription.Record.developerName("Sub")
  private static let topic = "/event/A__e"

  private static func line(topic: String, state: String) throws -> String {
    try ConnectionCheck.line(
      ManagedEventSubscription(
        topic: topic, state: state, defaultReplay: "LATEST", errorRecoveryReplay: nil),
      Self.record, topic: Self.topic)
  }

  @Test(
    "A running subscription to the pipeline's topic passes the check", arguments: ["RUN", "NEW"])
  func passes(state: String) throws {
    #expect(
      try Self.line(topic: Self.topic, state: state)
        == "managed subscription: Sub is for this topic and in the state \(state) "
        + "(defaultReplay LATEST); whether a client has it is not checked")
  }

  @Test("A subscription that is missing, stopped or for another topic fails the check as in a run")
  func fails() throws {
    let missing = #expect(throws: RunFailure.self) {
      try ConnectionCheck.line(nil, Self.record, topic: Self.topic)
    }
    #expect(missing?.exitCode == .refused)
    #expect(missing?.message.contains("no ManagedEventSubscription Sub") == true)
    for state in ["STOP", "PAUSE", "stop"] {
      let stopped = #expect(throws: RunFailure.self) {
        try Self.line(topic: Self.topic, state: state)
      }
      #expect(stopped?.exitCode == .refused)
      #expect(stopped?.message.contains("in the state \(state); set it to RUN") == true)
    }
    let other = #expect(throws: RunFailure.self) {
      try Self.line(topic: "/event/B__e", state: "RUN")
    }
    #expect(other?.exitCode == .configuration)
    #expect(
      other?.message.contains("is for the topic '/event/B__e', not for '/event/A__e'") == true)
  }
}
