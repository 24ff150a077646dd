import JSON
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Data classification of fields")
struct FieldDefinitionTests {
  @Test("Every field of an object has its classification, and parts of compounds have none")
  func fields() async throws {
    let org = try await OrgServer {
      $0.org.userPermissions = ["ViewSetup"]
      $0.org.classifiedFields = [
        "Opportunity.Name=PII;GDPR/Confidential", "Opportunity.Amount=/Restricted",
        "Account.Name=PII", "Opportunity.Nope__c=PII",
      ]
    }
    let fields = try await org.client.fieldDefinitions(of: "Opportunity")
    func field(_ name: String) -> FieldDefinition? { fields.first { $0.name == name } }
    #expect(
      field("Name")
        == FieldDefinition(
          name: "Name", compliance: ["PII", "GDPR"], sensitivity: "Confidential"))
    #expect(
      field("Amount") == FieldDefinition(name: "Amount", compliance: [], sensitivity: "Restricted"))
    #expect(
      field("StageName") == FieldDefinition(name: "StageName", compliance: [], sensitivity: nil))
    #expect(field("Nope__c") == nil)
    #expect(
      try await org.client.fieldDefinitions(of: "Account").contains { $0.name == "BillingStreet" }
        == false)
    await org.stop()
  }

  @Test("An object that the org does not describe and a user without the right are errors")
  func refusals() async throws {
    let org = try await OrgServer { $0.org.userPermissions = ["ViewSetup"] }
    await #expect { try await org.client.fieldDefinitions(of: "Nope") } throws: {
      ($0 as? RESTError)?.message.contains("describes no field") == true
    }
    await org.stop()
    let other = try await OrgServer()
    await #expect { try await other.client.fieldDefinitions(of: "Account") } throws: {
      ($0 as? RESTError)?.errorCode == "INVALID_TYPE"
    }
    await other.stop()
  }

  @Test(
    "An answer that does not say whether a field is classified is refused",
    arguments: [
      #"{"QualifiedApiName":"Email"}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":null}"#,
      #"{"QualifiedApiName":"Email","SecurityClassification":"Restricted"}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":["PII"],"SecurityClassification":null}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":false,"SecurityClassification":null}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":null,"SecurityClassification":0}"#,
      #"{"QualifiedApiName":"E mail","ComplianceGroup":null,"SecurityClassification":null}"#,
      #"{"QualifiedApiName":null,"ComplianceGroup":null,"SecurityClassification":null}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":"P\nI","SecurityClassification":null}"#,
      #"{"QualifiedApiName":"Email","ComplianceGroup":"\#(String(repeating: "P;", count: 201))","SecurityClassification":null}"#,
    ])
  func hostile(json: String) throws {
    let record = QueryRecord(json: try JSONValue(parsing: json))
    let error = #expect(throws: RESTError.self) { try RESTClient.definition(record, "x") }
    #expect(error?.disposition == .stop)
  }
}
