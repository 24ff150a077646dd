import ArgumentParser
import Clocks
import GRPCCore
import JSON
import OrgTestSupport
import Pipeline
import PubSubAPI
import PubSubSimulator
import SalesforceREST
import SimulatedOrg
import Testing

@testable import PubSubETL

@Suite("Topics and fields of an org") struct TopicListTests {
  private static let served = [
    "/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/data/ChangeEvents",
    "/data/Sales__chn", "/event/Order_Event__e",
  ]

  private static func org(
    permissions: [String] = [], hidden: [String] = [], existing: Int? = 5
  ) async throws -> OrgServer {
    try await OrgServer {
      $0.isPlaintext = true
      $0.org.topics = Self.served
      $0.org.existing = existing
      $0.org.userPermissions = permissions
      $0.org.hiddenFields = hidden
    }
  }

  /// With the org of the environment.
  private static func open<Value>(
    _ org: OrgServer, _ body: (OrgConnection) async throws -> Value
  ) async throws -> Value {
    let (configuration, secrets) = try OrgConfiguration.load(
      file: nil, environment: Environment(org.environment))
    return try await OrgConnection.open(
      configuration, secrets: secrets, clock: ProcessClock(), body)
  }

  // MARK: Topics

  @Test("Names of the org's objects become the topics that the service may have")
  func candidates() {
    let objects = ["Account", "AccountChangeEvent", "Foo__ChangeEvent", "Order__e", "Event"]
      .map { ListedObject(name: $0, label: "Label of \($0)") }
    #expect(
      TopicList.candidates(objects) == [
        .init(name: "/data/ChangeEvents", kind: .channel, label: "All selected objects"),
        .init(name: "/data/AccountChangeEvent", kind: .changes, label: "Label of Account"),
        .init(
          name: "/data/Foo__ChangeEvent", kind: .changes, label: "Label of Foo__ChangeEvent"),
        .init(name: "/event/Order__e", kind: .platformEvent, label: "Label of Order__e"),
        .init(name: "/event/Event", kind: .platformEvent, label: "Label of Event"),
      ])
  }

  @Test("The list has what the service serves, and says which right custom channels need")
  func withoutSetup() async throws {
    let org = try await Self.org()
    let list = try await Self.open(org) { try await TopicList.read($0) }
    #expect(
      list.topics.map(\.name) == [
        "/data/AccountChangeEvent", "/data/OpportunityChangeEvent", "/data/ChangeEvents",
        "/event/Order_Event__e",
      ])
    #expect(list.refused.isEmpty)
    #expect(
      list.notes == [
        "custom channels are not listed: the user needs View Setup and Configuration"
      ])
    #expect(list.text.hasPrefix("/data/AccountChangeEvent      changes         Account\n"))
    #expect(list.json["topics"]?.array?.last?["label"] == "Order Event")
    await org.stop()
  }

  @Test("A user with View Setup and Configuration sees custom channels")
  func channels() async throws {
    let org = try await Self.org(permissions: ["ViewSetup"])
    let list = try await Self.open(org) { try await TopicList.read($0) }
    #expect(
      list.topics.filter { $0.kind == .channel } == [
        .init(name: "/data/ChangeEvents", kind: .channel, label: "All selected objects"),
        .init(name: "/data/Sales__chn", kind: .channel, label: "Sales"),
      ])
    #expect(list.notes.isEmpty)
    await org.stop()
  }

  @Test("Topics that are refused are named with the remedy, and those that do not exist are not")
  func refused() async throws {
    let topics = (0..<40).map {
      TopicList.Topic(name: "/data/A\($0)ChangeEvent", kind: .changes, label: "")
    }
    let list = try await TopicList.ask(topics) { name in
      switch name {
      case "/data/A1ChangeEvent": return false
      case "/data/A2ChangeEvent":
        throw PubSubError(.service, status: .permissionDenied, "no")
      case "/data/A3ChangeEvent": return true
      default: throw PubSubError(.service, status: .notFound, "no")
      }
    }
    #expect(list.topics.map(\.name) == ["/data/A3ChangeEvent"])
    #expect(
      list.notes
        == ["A1", "A2"].map {
          "/data/\($0)ChangeEvent: the run-as user is not allowed to subscribe; grant it View All on "
            + $0
        })
  }

  @Test("A service that does not answer fails the list")
  func unavailable() async throws {
    let topics = [TopicList.Topic(name: "/event/A__e", kind: .platformEvent, label: "")]
    await #expect(throws: PubSubError.self) {
      try await TopicList.ask(topics) { _ in
        throw PubSubError(.service, status: .unavailable, "no")
      }
    }
  }

  @Test("An org without the REST API is an error that names it")
  func withoutREST() async throws {
    let org = try await Self.org(existing: nil)
    await #expect {
      try await Self.open(org) { try await TopicList.read($0) }
    } throws: { RunFailure($0).exitCode == .refused }
    await org.stop()
  }

  // MARK: Fields

  private static func fields(
    _ topic: String, naming: FlattenNaming = .path, _ org: OrgServer
  ) async throws -> (fields: TopicFields, remark: String?) {
    try await Self.open(org) { try await TopicFields.read(topic, naming: naming, $0) }
  }

  @Test("Each column has its types, its label and whether the user may read it")
  func changes() async throws {
    let org = try await Self.org(hidden: ["Opportunity.NextStep"])
    let (found, remark) = try await Self.fields("/data/OpportunityChangeEvent", org)
    func field(_ name: String) -> TopicFields.Field? { found.fields.first { $0.name == name } }
    #expect(remark == nil)
    #expect(
      field("Amount")
        == .init(
          name: "Amount", path: "Amount", type: "double", salesforceType: "Data:Currency",
          label: "Amount", isReadable: true))
    #expect(field("CloseDate")?.type == "date")
    #expect(field("NextStep")?.isReadable == false)
    #expect(field("NextStep")?.type == "string")
    #expect(
      field("Weighted_Amount__c")
        == .init(
          name: "Weighted_Amount__c", path: "Weighted_Amount__c", salesforceType: "currency",
          label: "Weighted Amount", isReadable: true, isBlind: true))
    #expect(found.fields.contains { $0.name.hasPrefix("_") || $0.name == "Id" } == false)
    let lines = found.text.split(separator: "\n")
    #expect(lines.first?.split(separator: " ").first == "COLUMN")
    #expect(lines.last?.hasSuffix("  not in events") == true)
    #expect(
      found.json["fields"]?.array?.first
        == [
          "name": "AccountId", "field": "AccountId", "type": "string",
          "salesforce_type": "ForeignKey:EntityId", "label": "Account Id", "readable": true,
          "blind": false,
        ])
    await org.stop()
  }

  @Test("Parts of compound fields have the column names of 'flatten', and labels of their own")
  func compounds() async throws {
    let org = try await Self.org()
    let (found, _) = try await Self.fields("/data/AccountChangeEvent", org)
    let city = found.fields.first { $0.name == "BillingAddress_City" }
    #expect(city?.path == "BillingAddress.City")
    #expect(city?.label == "Billing City")
    #expect(city?.isReadable == true)
    #expect(found.fields.contains { $0.name == "BillingAddress" } == false)
    let (named, _) = try await Self.fields("/data/AccountChangeEvent", naming: .sobject, org)
    #expect(named.fields.first { $0.name == "BillingCity" }?.path == "BillingAddress.City")
    await org.stop()
  }

  @Test("The fields of a platform event are all readable")
  func platformEvent() async throws {
    let org = try await Self.org()
    let (found, _) = try await Self.fields("/event/Order_Event__e", org)
    let number = found.fields.first { $0.name == "Order_Number__c" }
    #expect(number?.label == "Order Number")
    #expect(found.fields.allSatisfy { $0.isReadable == true && !$0.isBlind && $0.type != nil })
    await org.stop()
  }

  @Test("Without the REST API the columns are listed, and a remark says what is not known")
  func withoutDescription() async throws {
    let org = try await Self.org(existing: nil)
    let (found, remark) = try await Self.fields("/data/OpportunityChangeEvent", org)
    #expect(found.fields.contains { $0.name == "Amount" && $0.isReadable == nil })
    #expect(remark?.hasPrefix("labels, rights and fields without events are not known: ") == true)
    await org.stop()
  }

  @Test(
    "A channel and a name that no topic has are mistakes of the command line",
    arguments: [
      ("/data/Sales__chn", "is a channel"), ("/data/Account", "/data/AccountChangeEvent"),
      ("Account", "expected a topic"),
    ])
  func arguments(topic: String, message: String) {
    #expect {
      try FieldsCommand.parse([topic])
    } throws: { FieldsCommand.message(for: $0).contains(message) }
  }

  @Test(
    "Parts of compound fields are named as the pipeline file names them",
    arguments: [
      (
        #"{"stages":[{"type":"drop"},{"type":"flatten","naming":"sobject"}]}"#,
        FlattenNaming.sobject
      ),
      (#"{"stages":[{"type":"flatten"}]}"#, .path), (#"{"endpoint":"x"}"#, .path),
      (#"{"stages":7}"#, .path), ("no JSON", .path),
    ])
  func naming(text: String, naming: FlattenNaming) throws {
    let sample = try SamplePipeline()
    try sample.write(text)
    let options = try FieldsCommand.parse([
      "/data/AccountChangeEvent", "--org", "\(sample.base)/pipeline.json",
    ]).orgOptions
    #expect(options.flattenNaming == naming)
    withExtendedLifetime(sample) {}
  }

  // MARK: The org

  @Test("Without --org, the org is that of pipelines/org.json")
  func environment() throws {
    let example = try JSONValue(parsing: Array(RepositoryPages.text("pipelines/org.json").utf8))
    let members = (example.members ?? []).filter { $0.name != "//" }
    #expect(OrgConfiguration.ofEnvironment == JSONValue(.object(members)))
  }

  @Test("A variable that is not set is a mistake that names it and --org")
  func missingVariables() {
    #expect {
      try OrgConfiguration.load(file: nil, environment: Environment(["SF_CLIENT_ID": "x"]))
    } throws: {
      ($0 as? ConfigurationError)?.mistakes.map(\.description) == [
        "without --org FILE: /auth/login_url: environment variable SF_LOGIN_URL is not set",
        "without --org FILE: /auth/client_secret: environment variable SF_CLIENT_SECRET is not set",
      ]
    }
  }
}
