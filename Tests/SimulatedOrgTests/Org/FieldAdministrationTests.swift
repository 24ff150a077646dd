import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

@Suite("What an admin does to fields of the simulated org")
struct FieldAdministrationTests {
  private static let topic = "/data/Station__ChangeEvent"

  private static func org(
    _ adapt: (inout SimulatedOrgConfiguration) -> Void = { _ in }
  ) throws
    -> Org
  {
    var configuration = SimulatedOrgConfiguration()
    configuration.topics = [Self.topic]
    configuration.existing = 60
    configuration.mix.wildcards = 0
    configuration.mix.overflows = 0
    configuration.mix.gaps = 0
    configuration.mix.nulls = 0
    adapt(&configuration)
    // In the past, so that REST shows the records.
    let org = try Org(configuration: configuration, epoch: 1_700_000_000_000) { Issue.record($0) }
    try org.advanceDataAPI()
    return org
  }

  private static func change(_ org: Org, _ text: String) throws {
    try org.change(FieldChange(parsing: text))
    try org.advanceDataAPI()
  }

  private static func values(_ org: Org, _ field: String) throws -> [JSON] {
    let bytes = try org.dataAPI?.query(
      "SELECT Id, SystemModstamp, \(field) FROM Station__c", withDeleted: false, batchSize: nil,
      at: org.clock.now)
    let answer = try JSONDecoder().decode(Answer.self, from: Data(bytes ?? []))
    return answer.records.map { $0[field] ?? .null }
  }

  private struct Answer: Decodable {
    var records: [[String: JSON]]
  }

  private enum JSON: Decodable, Equatable {
    case null
    case boolean(Bool)
    case number(Double)
    case text(String)
    case other

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let value = try? container.decode(Bool.self) {
        self = .boolean(value)
      } else if let value = try? container.decode(Double.self) {
        self = .number(value)
      } else if let value = try? container.decode(String.self) {
        self = .text(value)
      } else {
        self = .other
      }
    }
  }

  private static func schemaID(_ org: Org) -> String? {
    org.publisher.currentSchema(of: .station)?.id
  }

  @Test("A new checkbox is false in every record, without an event")
  func checkbox() throws {
    let org = try Self.org()
    let (before, published) = (Self.schemaID(org), org.publisher.published)
    try Self.change(org, "add Station__c.Checked__c checkbox")
    #expect(try Set(Self.values(org, "Checked__c").map { "\($0)" }) == ["boolean(false)"])
    #expect(Self.schemaID(org) != before)
    #expect(org.publisher.published == published)
    try org.publish(40, topic: Self.topic)
    try org.advanceDataAPI()
    #expect(try Self.values(org, "Checked__c").contains(.boolean(true)))
  }

  @Test("A number that becomes a text keeps its values and stamps")
  func numberToText() throws {
    let org = try Self.org()
    let stamps = try Self.values(org, "SystemModstamp")
    let numbers = try Self.values(org, "Reading__c")
    let published = org.publisher.published
    try Self.change(org, "convert Station__c.Reading__c text")
    let texts = try Self.values(org, "Reading__c")
    #expect(numbers.contains { $0 != .null })
    for (number, text) in zip(numbers, texts) {
      switch (number, text) {
      case (.number(let number), .text(let text)): #expect(Double(text) == number)
      default: #expect(number == text)
      }
    }
    #expect(try Self.values(org, "SystemModstamp") == stamps)
    #expect(org.publisher.published == published)
  }

  @Test("A text that becomes a number loses its values, and one event names no record")
  func textToNumber() throws {
    let org = try Self.org()
    let published = org.publisher.published
    try Self.change(org, "convert Station__c.Serial__c number")
    #expect(try Set(Self.values(org, "Serial__c").map { "\($0)" }) == ["null"])
    #expect(org.publisher.published == published + 1)
  }

  @Test("A date that becomes a date with time keeps the schema ID")
  func dateToDateTime() throws {
    let org = try Self.org()
    let before = Self.schemaID(org)
    try Self.change(org, "convert Station__c.Installed_On__c datetime")
    #expect(Self.schemaID(org) == before)
    let schema = try org.log.schema(try #require(before))
    #expect(
      schema.json.contains(
        "\"Installed_On__c\",\"type\":[\"null\",\"long\"],\"doc\":\"Data:DateTime"))
    try org.publish(60, topic: Self.topic)
    try org.advanceDataAPI()
    #expect(
      try Self.values(org, "Installed_On__c").contains {
        if case .text(let text) = $0 { !text.contains("T00:00:00.000") } else { false }
      })
  }

  @Test("A picklist value with another name has it in all records, whose stamps alone move")
  func renamedValue() throws {
    for field in ["Status__c", "Tags__c"] {
      let org = try Self.org()
      let published = org.publisher.published
      let (before, stamps) = (
        try Self.values(org, field), try Self.values(org, "SystemModstamp")
      )
      try Self.change(org, "rename_value Station__c.\(field) Closed Won|Won at last")
      let (after, moved) = (try Self.values(org, field), try Self.values(org, "SystemModstamp"))
      var count = 0
      for (index, value) in before.enumerated() {
        guard case .text(let text) = value else {
          #expect(after[index] == value && moved[index] == stamps[index])
          continue
        }
        let choices = text.split(separator: ";").map { $0 == "Closed Won" ? "Won at last" : $0 }
        #expect(after[index] == .text(choices.joined(separator: ";")))
        let isConcerned = choices.contains("Won at last")
        #expect((moved[index] != stamps[index]) == isConcerned)
        count += isConcerned ? 1 : 0
      }
      #expect(count > 0)
      #expect(org.publisher.published == published)
      let description = try #require(org.dataAPI).describe("Station__c")
      #expect(description.contains("\"label\":\"Closed Won\",\"value\":\"Won at last\""))
    }
  }

  @Test("Records get new values of picklists, and none that are no longer active")
  func addedValue() throws {
    let org = try Self.org()
    let all = SampleText.picklist.map { String(decoding: $0, as: UTF8.self) }
    for field in ["Status__c", "Tags__c"] {
      try Self.change(org, "add_value Station__c.\(field) Brand new")
      for value in all { try Self.change(org, "deactivate_value Station__c.\(field) \(value)") }
      #expect(throws: SimulatorError.self) {
        try Self.change(org, "deactivate_value Station__c.\(field) Brand new")
      }
    }
    let before = try Self.values(org, "Status__c")
    try org.publish(150, topic: Self.topic)
    try org.advanceDataAPI()
    let after = try Self.values(org, "Status__c")
    #expect(after.contains(.text("Brand new")))
    #expect(after.allSatisfy { $0 == .null || $0 == .text("Brand new") || before.contains($0) })
    #expect(try Self.values(org, "Tags__c").contains(.text("Brand new")))
    for value in all { try Self.change(org, "activate_value Station__c.Tags__c \(value)") }
    try org.publish(150, topic: Self.topic)
    try org.advanceDataAPI()
    #expect(
      try Self.values(org, "Tags__c").contains {
        if case .text(let text) = $0 { text.contains("Brand new;") } else { false }
      })
  }

  @Test("Describe has the labels and the order that an admin gave to picklist values")
  func orderedValues() throws {
    let org = try Self.org()
    try Self.change(org, "relabel_value Station__c.Status__c Hot|Very \"hot\"")
    try Self.change(org, "move_value Station__c.Status__c Cold|1")
    try Self.change(org, "deactivate_value Station__c.Status__c Warm")
    let description = try #require(org.dataAPI).describe("Station__c")
    let field = try #require(description.range(of: "{\"name\":\"Status__c\""))
    let values = try #require(
      description[field.upperBound...].range(of: "\"picklistValues\":[")
    ).upperBound
    #expect(
      description[values...].hasPrefix("{\"active\":true,\"defaultValue\":false,\"label\":\"Cold\"")
    )
    #expect(description[values...].contains("\"label\":\"Very \\\"hot\\\"\",\"value\":\"Hot\""))
    #expect(
      description[values...].contains(
        "\"active\":false,\"defaultValue\":false,\"label\":\"Warm\",\"value\":\"Warm\""))
  }

  @Test(
    "Changes of picklist values that make no sense are refused",
    arguments: [
      "add_value Station__c.Status__c Hot", "add_value Station__c.Status__c a;b",
      "rename_value Station__c.Status__c Hot|Cold", "rename_value Station__c.Status__c Hot",
      "relabel_value Station__c.Status__c Unknown|Label", "move_value Station__c.Status__c Hot|16",
      "move_value Station__c.Status__c Hot|0", "add_value Station__c.Serial__c Hot",
      "deactivate_value Station__c.Status__c", "add_value Station__c.Status__c a\tb",
    ])
  func refusedValue(_ change: String) throws {
    let org = try Self.org()
    #expect(throws: SimulatorError.self) { try Self.change(org, change) }
  }

  @Test("A hidden field is missing in describe and refused in queries, until it is shown again")
  func hidden() throws {
    let org = try Self.org()
    try Self.change(org, "hide Station__c.Status__c")
    let api = try #require(org.dataAPI)
    #expect(try !api.describe("Station__c").contains("\"Status__c\""))
    let refusal = #expect(throws: APIRefusal.self) { _ = try Self.values(org, "Status__c") }
    #expect(refusal?.code == "INVALID_FIELD")
    try Self.change(org, "show Station__c.Status__c")
    #expect(try api.describe("Station__c").contains("\"Status__c\""))
  }

  @Test("A deleted field leaves schema and describe, and comes back with its values and schema ID")
  func deleted() throws {
    let org = try Self.org()
    let before = (id: Self.schemaID(org), values: try Self.values(org, "Status__c"))
    try Self.change(org, "delete Station__c.Status__c")
    #expect(Self.schemaID(org) != before.id)
    #expect(throws: APIRefusal.self) { _ = try Self.values(org, "Status__c") }
    try org.publish(30, topic: Self.topic)
    try Self.change(org, "undelete Station__c.Status__c")
    #expect(Self.schemaID(org) == before.id)
    #expect(try Self.values(org, "Status__c").prefix(60).contains { $0 != .null })
  }

  @Test("A renamed field keeps its ID and values, and its formula; names can be swapped")
  func renamed() throws {
    let org = try Self.org()
    let before = Self.schemaID(org)
    let (status, serial) = (try Self.values(org, "Status__c"), try Self.values(org, "Serial__c"))
    try Self.change(org, "rename Station__c.Status__c Phase__c")
    #expect(throws: APIRefusal.self) { _ = try Self.values(org, "Status__c") }
    #expect(try Self.values(org, "Phase__c") == status)
    let schema = try org.log.schema(try #require(Self.schemaID(org)))
    #expect(
      schema.json.contains(
        "\"Phase__c\",\"type\":[\"null\",\"string\"],\"doc\":\"Data:DynamicEnum:00NDp00000S0044"))
    try Self.change(org, "rename Station__c.Serial__c Status__c")
    try Self.change(org, "rename Station__c.Phase__c Serial__c")
    #expect(try Self.values(org, "Status__c") == serial)
    #expect(try Self.values(org, "Serial__c") == status)
    #expect(Self.schemaID(org) != before)
    try org.publish(30, topic: Self.topic)
    try Self.change(org, "hide Station__c.Serial__c")
    try Self.change(org, "rename Station__c.Serial__c Phase__c")
    #expect(throws: APIRefusal.self) { _ = try Self.values(org, "Phase__c") }
    #expect(throws: SimulatorError.self) {
      try Self.change(org, "rename Station__c.Phase__c Status__c")
    }
    #expect(throws: SimulatorError.self) {
      try Self.change(org, "rename Station__c.Name Title__c")
    }
    try Self.change(org, "add Station__c.Half__c formula:Load__c")
    try Self.change(org, "rename Station__c.Load__c Weight__c")
    #expect(try Self.values(org, "Half__c").contains { $0 != .null })
  }

  @Test("A new field may have the name of a deleted one, which then cannot come back")
  func reused() throws {
    let org = try Self.org()
    try Self.change(org, "hide Station__c.Status__c")
    try Self.change(org, "delete Station__c.Status__c")
    try Self.change(org, "add Station__c.Status__c text")
    #expect(try Set(Self.values(org, "Status__c").map { "\($0)" }) == ["null"])
    let schema = try org.log.schema(try #require(Self.schemaID(org)))
    #expect(schema.json.contains("\"doc\":\"Data:Text:00NDp00000A0001\""))
    try org.publish(60, topic: Self.topic)
    try org.advanceDataAPI()
    #expect(try Self.values(org, "Status__c").contains { $0 != .null })
    #expect(throws: SimulatorError.self) { try Self.change(org, "undelete Station__c.Status__c") }
  }

  @Test("A formula follows its number field and is calculated according to describe")
  func formula() throws {
    let org = try Self.org()
    try Self.change(org, "add Station__c.Half__c formula:Load__c")
    try org.publish(60, topic: Self.topic)
    try org.advanceDataAPI()
    let (halves, numbers) = (try Self.values(org, "Half__c"), try Self.values(org, "Load__c"))
    for (half, number) in zip(halves, numbers) {
      switch (half, number) {
      // Of a percentage, which is a share in formulas.
      case (.number(let half), .number(let number)): #expect(half == number / 100 / 2)
      default: #expect(half == number)
      }
    }
    #expect(
      try #require(org.dataAPI).describe("Station__c").contains(
        "\"name\":\"Half__c\",\"label\":\"Half\",\"type\":\"double\",\"soapType\":\"xsd:double\","
          + "\"compoundFieldName\":null,\"calculated\":true"))
    #expect(throws: SimulatorError.self) { try Self.change(org, "delete Station__c.Load__c") }
  }

  @Test("An edited formula has other values in some records, and no stamp moves")
  func editedFormula() throws {
    let org = try Self.org()
    try Self.change(org, "add Station__c.Half__c formula:Load__c")
    try org.publish(60, topic: Self.topic)
    try org.advanceDataAPI()
    let (before, stamps) = (
      try Self.values(org, "Half__c"), try Self.values(org, "SystemModstamp")
    )
    try Self.change(org, "edit Station__c.Half__c")
    try org.advanceDataAPI()
    let after = try Self.values(org, "Half__c")
    #expect(after != before && zip(after, before).contains { $0 == $1 })
    #expect(try Self.values(org, "SystemModstamp") == stamps)
    #expect(throws: SimulatorError.self) { try Self.change(org, "edit Station__c.Load__c") }
  }

  @Test("A restarted org has the same fields and records")
  func restart() throws {
    let directory = try TemporaryDirectory()
    func org() throws -> Org { try Self.org { $0.stateDirectory = directory.path } }
    var first: Org? = try org()
    for change in [
      "add Station__c.Checked__c checkbox", "convert Station__c.Reading__c text",
      "delete Station__c.Tags__c", "convert Station__c.Installed_On__c datetime",
      "rename Station__c.Status__c Tags__c",
    ] { try first?.change(FieldChange(parsing: change)) }
    try first?.publish(30, topic: Self.topic)
    try first?.writeState(to: "\(directory.path)/first")
    first = nil
    try org().writeState(to: "\(directory.path)/second")
    #expect(
      try Data(contentsOf: URL(filePath: "\(directory.path)/first"))
        == Data(contentsOf: URL(filePath: "\(directory.path)/second")))
  }
}
