import SalesforceREST
import Testing

@testable import PubSubETL

@Suite("Fields of person accounts")
struct PersonAccountTests {
  @Test(
    "An account has the classification of its contact's field under each name that it has for it",
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
