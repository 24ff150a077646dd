import Avro
import Foundation
import HTTPClient
import JSON
import OrgTestSupport
import Pipeline
import PubSubSimulator
import SimulatedOrg
import TestSupport
import Testing

@testable import PubSubSource
@testable import RESTSource
@testable import SalesforceREST

/// Every record of an org, read by Bulk and put into rows of its events' schema, against the file that
/// the org writes by other code.
@Suite("Records as rows of their events", .serialized) struct SnapshotDecoderTests {
  static let objects = ["Opportunity", "Account", "Contact", "Station__c"]

  static func layout(of object: String) throws -> RecordLayout {
    let name = object.hasSuffix("__c") ? object.dropLast(1) + "ChangeEvent" : object + "ChangeEvent"
    let topic = "/data/\(name)"
    let member = try #require(Topic.all.first { $0.name == topic }?.members.first)
    let schema = try Schema(parsing: Array(#require(member.versions.last).json.utf8))
    return try EventLayout(
      schema, schemaID: "s", topic: topic, options: EventDecodingOptions()
    ).layout
  }

  private static func org(
    _ configure: (inout SimulatorConfiguration) -> Void = { _ in }
  ) async throws -> OrgServer {
    try await OrgServer {
      $0.org.topics = ["/data/ChangeEvents"]
      $0.org.existing = 400
      $0.org.events = 2000
      configure(&$0)
    }
  }

  /// What the org holds, by record ID.
  private static func state(_ org: OrgServer) async throws -> [String: JSONValue] {
    let path = "\(org.directory.path)/records"
    try await org.server.writeState(to: path)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    var records: [String: JSONValue] = [:]
    for line in text.split(separator: "\n") {
      let record = try JSONValue(parsing: Array(line.utf8))
      guard record["is_deleted"]?.boolean == false else { continue }
      records[try #require(record["id"]?.string)] = record
    }
    return records
  }

  @Test("Every record decodes to the row that its events give", arguments: Self.objects)
  func everyRecord(object: String) async throws {
    let org = try await Self.org()
    let layout = try Self.layout(of: object)
    let plan = SnapshotPlan(layout, try await org.client.describe(object))
    #expect(plan.unread.isEmpty)
    let decoder = SnapshotDecoder(plan)
    let job = try await org.endedJob(SOQL.select(plan.fields, from: object))
    let page = try await org.client.results(ofJob: job.id, locator: nil, maxRecords: 100_000)
    let truth = try await Self.state(org).filter { $0.value["entity"]?.string == object }
    let batch = RecordBatch(layout: layout)
    var reader = CSVReader()
    var seen: Set<String> = []
    func read(_ reader: inout CSVReader) throws {
      while true {
        switch try reader.next() {
        case .header: continue
        case .needsBytes, .end: return
        case .row:
          let identity = try reader.withRow { row in try decoder.decode(row, into: batch) }
          let id = String(decoding: batch.bytes(identity.recordID), as: UTF8.self)
          let record = try #require(truth[id])
          #expect(record["system_modstamp"]?.integer == identity.stamp)
          seen.insert(id)
          let fields = try #require(record["fields"])
          for column in layout.columns where !column.isMetadata {
            Self.compare(column, batch.row(identity.row), fields, id)
          }
        }
      }
    }
    while let piece = try await page.body.next() {
      piece.withUnsafeBytes { reader.append($0) }
      try read(&reader)
    }
    reader.finish()
    try read(&reader)
    #expect(seen == Set(truth.keys))
    await org.stop()
  }

  private static func compare(
    _ column: Column, _ row: RecordBatch.Row, _ fields: JSONValue, _ id: String
  ) {
    let expected = fields[column.name]
    switch column.content {
    case .constant: break
    case .slot(let slot, let type):
      Self.compare(row, slot, type, expected, "\(id) \(column.path)")
    case .record(let slot, let scalar, let children):
      let isText = expected?.string != nil
      if let scalar {
        Self.compare(row, scalar.slot, scalar.type, isText ? expected : nil, "\(id) \(column.path)")
      }
      let parts = isText ? nil : expected
      // An address without a part is null for the API.
      let isEmpty = parts?.members?.isEmpty ?? true
      #expect(row.hasValue(slot) == (isText || !isEmpty), "\(id) \(column.path)")
      for child in children {
        guard case .slot(let slot, let type) = child.content else { continue }
        Self.compare(row, slot, type, parts?[child.name], "\(id) \(child.path)")
      }
    }
  }

  private static func compare(
    _ row: RecordBatch.Row, _ slot: Int, _ type: ColumnType, _ expected: JSONValue?, _ place: String
  ) {
    guard let expected else {
      #expect(row.presence[slot] == RecordBatch.Presence.null, "\(place)")
      return
    }
    guard let cell = row.value(slot) else {
      Issue.record("\(place): null instead of \(expected.text())")
      return
    }
    let isSame =
      switch expected.content {
      case .string(let text):
        String(decoding: row.bytes(cell), as: UTF8.self)
          == text.replacingOccurrences(of: "\r\n", with: "\n")
      case .boolean(let value): cell == (value ? 1 : 0)
      case .number(let text) where type == .double:
        Double(bitPattern: cell) == Double(text)
      case .number(let text): Int64(bitPattern: cell) == Int64(text)
      default: false
      }
    #expect(isSame, "\(place): not \(expected.text())")
  }

  @Test("A hidden field is named, and absent from rows rather than null")
  func hidden() async throws {
    let org = try await Self.org { $0.org.hiddenFields = ["Contact.Email", "Contact.MailingCity"] }
    let layout = try Self.layout(of: "Contact")
    let plan = SnapshotPlan(layout, try await org.client.describe("Contact"))
    #expect(
      plan.unread == [
        .init(name: "MailingAddress.City", reason: .notDescribed),
        .init(name: "Email", reason: .notDescribed),
      ] || plan.unread.map(\.name).sorted() == ["Email", "MailingAddress.City"])
    let page = try await org.client.query(
      SOQL.select(plan.fields, from: "Contact", where: "Id != null"))
    let batch = RecordBatch(layout: layout)
    let texts = RowTexts(plan.fields.map { page.records[0][$0] ?? "" })
    let identity = try SnapshotDecoder(plan).decode(texts, into: batch)
    let email = try #require(layout.columns.first { $0.name == "Email" })
    guard case .slot(let slot, _) = email.content else { return }
    #expect(batch.row(identity.row).presence[slot] == RecordBatch.Presence.absent)
    await org.stop()
  }

  @Test(
    "A field that is another kind of date than its schema says is not read, and the plan says so",
    arguments: [("date", false), ("datetime", true), ("time", true), ("string", false)])
  func otherKindOfDate(type: String, isOutdated: Bool) throws {
    let object = try ObjectDescription(
      JSONValue(
        parsing: #"{"name":"Opportunity","fields":[{"name":"CloseDate","type":"\#(type)"}]}"#),
      call: "")
    let plan = SnapshotPlan(try Self.layout(of: "Opportunity"), object)
    #expect(plan.isOfOutdatedSchema == isOutdated)
    #expect(plan.fields.contains("CloseDate") == !isOutdated)
  }

  @Test("An impossible value is refused by its field's name, without the value")
  func refused() throws {
    let layout = try Self.layout(of: "Opportunity")
    let fields = ["Id", "SystemModstamp", "Amount", "Name", "IsWon"].map {
      #"{"name":"\#($0)","type":"string"}"#
    }
    let object = try ObjectDescription(
      JSONValue(
        parsing: #"{"name":"Opportunity","fields":[\#(fields.joined(separator: ","))]}"#), call: "")
    let decoder = SnapshotDecoder(SnapshotPlan(layout, object))
    let good = ["006Dp0000004C93IAE", "2026-02-17T04:03:15.000Z"]
    func refusal(_ id: String, _ stamp: String, _ values: [String: String]) -> SnapshotRowError? {
      let rest = decoder.plan.fields.dropFirst(2).map { values[$0] ?? "" }
      do throws(SnapshotRowError) {
        _ = try decoder.decode(RowTexts([id, stamp] + rest), into: RecordBatch(layout: layout))
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal(good[0], good[1], ["Amount": "1.5E7", "IsWon": "true"]) == nil)
    #expect(refusal(good[0], good[1], ["Amount": "secret"])?.field == "Amount")
    #expect(
      refusal(good[0], good[1], ["Amount": "secret"])?.description.contains("secret") == false)
    #expect(refusal(good[0], good[1], ["IsWon": "1"])?.field == "IsWon")
    #expect(refusal("006", good[1], [:])?.field == "Id")
    #expect(refusal("006Dp0000004C93IA'", good[1], [:])?.field == "Id")
    #expect(refusal(good[0], "", [:])?.field == "SystemModstamp")
    #expect(refusal(good[0], "soon", [:])?.field == "SystemModstamp")
    let wrong = RowTexts(good)
    #expect(throws: SnapshotRowError.self) {
      try decoder.decode(wrong, into: RecordBatch(layout: layout))
    }
    let invalid = RowTexts(
      utf8: decoder.plan.fields.map { field in
        switch field {
        case "Id": Array(good[0].utf8)
        case "SystemModstamp": Array(good[1].utf8)
        case "Name": [0xC3, 0x28]
        default: []
        }
      })
    #expect(throws: SnapshotRowError.self) {
      try decoder.decode(invalid, into: RecordBatch(layout: layout))
    }
  }
}
