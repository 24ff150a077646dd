import SalesforceREST
import Testing

@testable import PubSubETL

@Suite("Fields of person accounts")
struct PersonAccountTests {
  @Test(
    "An account field has the classification of its contact field under each of its names",
    arguments: [
      ("Email", ["PersonEmail"]), ("Level__c", ["Level__pc"]), ("Phone", ["Phone", "PersonPhone"]),
      ("LastName", ["LastName", "PersonLastName"]), ("MailingAddress", ["PersonMailingAddress"]),
      (
        "Name", ["Salutation", "FirstName", "MiddleName", "LastName", "Suffix", "InformalName"]
      ),
    ])
  func names(contact: String, account: [String]) {
    let field = FieldDefinition(name: contact, compliance: [], sensitivity: nil)
    #expect(field.namesInAccount == account)
  }
}
