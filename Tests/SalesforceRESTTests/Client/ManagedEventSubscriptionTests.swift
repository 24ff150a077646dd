import JSON
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Records of managed subscriptions")
struct ManagedEventSubscriptionTests {
  private static let topic = "/data/OpportunityChangeEvent"

  @Test("A record is found by its developer name and by its ID of 15 or 18 characters")
  func found() async throws {
    let org = try await OrgServer { $0.org.userPermissions = ["ViewSetup"] }
    try await org.server.setManaged(["name": "Other", "topic": "/data/AccountChangeEvent"])
    try await org.server.setManaged([
      "name": "Sub", "topic": Self.topic, "default": "earliest", "recovery": "latest",
      "state": "STOP",
    ])
    let expected = ManagedEventSubscription(
      topic: Self.topic, state: "STOP", defaultReplay: "EARLIEST", errorRecoveryReplay: "LATEST")
    #expect(try await org.client.managedSubscription(developerName: "Sub") == expected)
    #expect(try await org.client.managedSubscription(id: "18x000000000002AAA") == expected)
    #expect(try await org.client.managedSubscription(id: "18x000000000002") == expected)
    #expect(try await org.client.managedSubscription(developerName: "Missing") == nil)
    await org.stop()
  }

  @Test("A user without View Setup and Configuration gets an error that the object is unknown")
  func refused() async throws {
    let org = try await OrgServer()
    await #expect { try await org.client.managedSubscription(developerName: "Sub") } throws: {
      ($0 as? RESTError)?.disposition == .describe
    }
    await org.stop()
  }

  @Test(
    "A response that names no topic or no state is refused, and its text is shown on one line",
    arguments: [
      #"{"Id":"18x000000000002AAA"}"#, #"{"Metadata":null}"#, #"{"Metadata":"RUN"}"#,
      #"{"Metadata":{"topicName":"/event/A__e"}}"#,
      #"{"Metadata":{"topicName":["/event/A__e"],"state":"RUN"}}"#,
    ])
  func hostile(json: String) throws {
    let record = QueryRecord(json: try JSONValue(parsing: json))
    let error = #expect(throws: RESTError.self) {
      try RESTClient.managedSubscription(record, "x")
    }
    #expect(error?.disposition == .stop)
    let odd = QueryRecord(
      json: try JSONValue(
        parsing: #"{"Metadata":{"topicName":"/event/A\n__e\u0007","state":"RUN","label":7}}"#))
    #expect(
      try RESTClient.managedSubscription(odd, "x")
        == ManagedEventSubscription(
          topic: "/event/A __e", state: "RUN", defaultReplay: nil, errorRecoveryReplay: nil))
  }
}
