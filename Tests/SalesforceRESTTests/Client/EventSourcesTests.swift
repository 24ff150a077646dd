import JSON
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Objects and channels of an org")
struct EventSourcesTests {
  @Test("The org lists objects, platform events, and change events that are not selected, too")
  func objects() async throws {
    let org = try await OrgServer()
    let objects = try await org.client.listedObjects()
    func label(_ name: String) -> String? { objects.first { $0.name == name }?.label }
    #expect(label("Opportunity") == "Opportunity")
    #expect(label("OpportunityChangeEvent") == "Change Event: Opportunity")
    #expect(label("ContactChangeEvent") == "Change Event: Contact")
    #expect(label("Order_Event__e") == "Order Event")
    #expect(label("Contact") == nil)
    let event = try await org.client.describe("Order_Event__e")
    #expect(event.field("Order_Number__c")?.label == "Order Number")
    await org.stop()
  }

  @Test("Custom channels are listed to a user with View Setup and Configuration")
  func channels() async throws {
    let org = try await OrgServer {
      $0.org.userPermissions = ["ViewSetup"]
      $0.org.topics = ["/data/Sales__chn", "/event/Orders__chn", "/data/ChangeEvents"]
    }
    #expect(
      try await org.client.eventChannels() == [
        EventChannel(name: "Sales__chn", label: "Sales", hasChanges: true),
        EventChannel(name: "Orders__chn", label: "Orders", hasChanges: false),
      ])
    await org.stop()
    let other = try await OrgServer()
    await #expect { try await other.client.eventChannels() } throws: {
      ($0 as? RESTError)?.disposition == .describe
    }
    await other.stop()
  }

  @Test("A channel of a package has the namespace in its name")
  func namespace() throws {
    let record = QueryRecord(
      json: try JSONValue(
        parsing:
          #"{"DeveloperName":"A","NamespacePrefix":"ns","ChannelType":"data","MasterLabel":"x\ny"}"#
      ))
    #expect(
      try RESTClient.channel(record)
        == EventChannel(name: "ns__A__chn", label: "x y", hasChanges: true))
  }

  @Test(
    "A channel without a usable name or type is refused",
    arguments: [
      #"{"DeveloperName":"A","NamespacePrefix":null}"#,
      #"{"DeveloperName":"../A","NamespacePrefix":null,"ChannelType":"data"}"#,
      #"{"DeveloperName":"A","NamespacePrefix":"n s","ChannelType":"data"}"#,
      #"{"DeveloperName":"A","NamespacePrefix":null,"ChannelType":"other"}"#,
      #"{"DeveloperName":["A"],"NamespacePrefix":null,"ChannelType":"data"}"#,
    ])
  func hostile(json: String) throws {
    let record = QueryRecord(json: try JSONValue(parsing: json))
    #expect(throws: RESTError.self) { try RESTClient.channel(record) }
  }
}
