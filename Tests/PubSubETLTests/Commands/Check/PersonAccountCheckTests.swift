import Testing

@testable import PubSubETL

@Suite("Person accounts in check --connect")
struct PersonAccountCheckTests {
  private static func line(_ topic: String, isSelected: Bool) -> String? {
    ConnectionCheck.personAccounts(
      SourceConfiguration.Topic(name: topic, start: nil), isSelected: isSelected)
  }

  @Test("For a pipeline with accounts alone, the message advises to add the contacts' topic")
  func single() {
    let line = Self.line("/data/AccountChangeEvent", isSelected: true)
    #expect(line?.contains("add /data/ContactChangeEvent to source.topic") == true)
    let missing = Self.line("/data/AccountChangeEvent", isSelected: false)
    #expect(missing?.contains("select Contact under Change Data Capture") == true)
    #expect(missing?.contains("/data/ContactChangeEvent") == true)
  }

  @Test("The channel of all selected objects needs no more than the selection of Contact")
  func channels() {
    #expect(Self.line("/data/ChangeEvents", isSelected: true) == nil)
    #expect(Self.line("/data/ChangeEvents", isSelected: false)?.contains("select Contact") == true)
    #expect(
      Self.line("/data/Sales__chn", isSelected: true)?.contains("ContactChangeEvent as a member")
        == true)
  }
}
