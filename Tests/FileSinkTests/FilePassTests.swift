import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// How far records were read, on its way through the checkpoint.
@Suite("Passes in the checkpoint") struct FilePassTests {
  private static let clock = InstantClock(reading: 1_771_300_995_123, readAt: .now)

  private static func random(_ random: inout SplitMix) -> FilePass {
    let batch = RecordBatch(layout: TestBatches().layout(topic: "/data/T", entity: "T"))
    batch.epoch = Int.random(in: 1...40, using: &random)
    batch.nextOrdinal = Int64.random(in: 0...1 << 40, using: &random)
    let entity = ["Opportunity", "Station__c", "Größe \"x\""].randomElement(using: &random) ?? ""
    var pass = ReadPass(entity: entity, number: Int.random(in: 1...5000, using: &random))
    var stored = FilePass(beginning: pass, batch, at: 1_771_300_995_000)
    for _ in 0..<Int.random(in: 0...4, using: &random) {
      pass.state = [.begun, .reading, .complete].randomElement(using: &random) ?? .begun
      pass.job = [nil, "750000000000001AAA", "pages:1f"].randomElement(using: &random) ?? nil
      pass.locator =
        [nil, "MTAwMA", "/services/query/01g-2000?a=\"b\""].randomElement(using: &random) ?? nil
      pass.row = Int.random(in: 0...50_000, using: &random)
      pass.rowCount = Int.random(in: pass.row...1 << 33, using: &random)
      // A job may bring more rows than it says.
      pass.total = [nil, pass.rowCount, pass.rowCount / 2].randomElement(using: &random) ?? nil
      pass.requestedAt =
        Bool.random(using: &random)
        ? Self.clock.instant(
          of: Int64.random(in: 1_771_000_000_000...1_772_000_000_000, using: &random))
        : nil
      stored.advance(to: pass, Self.clock)
    }
    return stored
  }

  @Test("A stored pass is read back by the next run, including its clock")
  func roundTrip() throws {
    var random = SplitMix(seed: 1)
    for _ in 0..<500 {
      let pass = Self.random(&random)
      let text = pass.json.text(.compact)
      let read = try FilePass(json: JSONValue(parsing: text))
      #expect(read == pass)
      let later = InstantClock(reading: 1_771_400_000_077, readAt: .now + .seconds(1000))
      var again = read
      again.advance(to: read.pass(later), later)
      #expect(again == pass)
    }
  }

  @Test("A field that is newer than the reads is noted with the time of its first event")
  func newerColumns() throws {
    func batch(_ fields: [String]) -> RecordBatch {
      let layout = TestBatches().layout(topic: "/data/T", entity: "T")
      let more = fields.enumerated().map { place, name in
        Column(
          name: name, path: [name], content: .slot(layout.slotCount + place, .string))
      }
      return RecordBatch(
        layout: RecordLayout(
          topic: layout.topic, schemaID: "s", entity: "T", family: layout.family,
          slotCount: layout.slotCount + more.count, fieldOrder: layout.fieldOrder,
          columns: layout.columns + more))
    }
    var pass = FilePass(
      beginning: ReadPass(entity: "T", number: 1), batch(["Name"]), at: 1_771_300_995_000)
    pass.note(batch(["Name", "Early__c"]).layout, at: 1_771_300_996_000)
    // The pass was not finished, so its lines may still have the column.
    #expect(pass.newer == [:])
    pass.note(batch(["Name"]))
    pass.finish(batch(["Name"]).layout, at: 1_771_300_997_000)
    pass.note(batch(["Name"]).layout, at: 1_771_300_998_000)
    #expect(pass.newer == [:])
    pass.note(batch(["Name", "Note__c"]).layout, at: 1_771_300_999_000)
    pass.note(batch(["Name", "Note__c"]).layout, at: 1_771_301_000_000)
    #expect(pass.newer == ["Note__c": 1_771_300_999_000])
    let stored = try JSONValue(parsing: pass.json.text(.compact))
    #expect(try FilePass(json: stored) == pass)
  }

  @Test("A field that no record of the last job had is noted as not read")
  func unreadColumns() throws {
    let batches = TestBatches()
    let layout = batches.layout(topic: "/data/T", entity: "T")
    let hidden = Column("Hidden__c", layout.slotCount, .string)
    let reads = RecordBatch(
      layout: RecordLayout(
        topic: "/data/T", schemaID: "s", entity: "T", family: layout.family,
        slotCount: layout.slotCount + 1, fieldOrder: layout.fieldOrder,
        columns: layout.columns + [hidden]))
    batches.append(read: "1", to: reads)
    var pass = FilePass(beginning: ReadPass(entity: "T", number: 1), reads, at: 1)
    pass.note(reads)
    #expect(pass.missing(of: reads.layout) == [])
    pass.finish(reads.layout, at: 2)
    #expect(pass.unread == ["Hidden__c"])
    #expect(pass.missing(of: reads.layout) == ["Hidden__c"])
    pass.note(reads.layout, at: 3)
    #expect(pass.newer == [:])
    let stored = try JSONValue(parsing: pass.json.text(.compact))
    #expect(try FilePass(json: stored) == pass)
    // A computed column may have no value in any record.
    var ratio = Column("Ratio", layout.slotCount, .double)
    ratio.isComputed = true
    let computed = RecordBatch(
      layout: RecordLayout(
        topic: "/data/T", schemaID: "s", entity: "T", family: layout.family,
        slotCount: layout.slotCount + 1, fieldOrder: layout.fieldOrder,
        columns: layout.columns + [ratio]))
    batches.append(read: "1", to: computed)
    pass = FilePass(beginning: ReadPass(entity: "T", number: 1), computed, at: 1)
    pass.note(computed)
    pass.finish(computed.layout, at: 2)
    #expect(pass.unread == [])
    // Without records, none lacks a value.
    pass = FilePass(beginning: ReadPass(entity: "T", number: 2), reads, at: 4)
    pass.finish(reads.layout, at: 5)
    #expect(pass.missing(of: reads.layout) == [] && pass.unread == [])
  }

  @Test("Fields that a refresh has read no longer count as lacking, and move to no other org")
  func refreshed() throws {
    let batches = TestBatches()
    let layout = batches.layout(topic: "/data/T", entity: "T")
    let half = Column("Half__c", layout.slotCount, .string)
    let wide = RecordLayout(
      topic: "/data/T", schemaID: "s", entity: "T", family: layout.family,
      slotCount: layout.slotCount + 1, fieldOrder: layout.fieldOrder,
      columns: layout.columns + [half])
    let reads = RecordBatch(layout: layout)
    batches.append(read: "1", to: reads)
    var whole = FilePass(beginning: ReadPass(entity: "T", number: 1), reads, at: 1)
    whole.advance(to: ReadPass(entity: "T", number: 1, state: .complete), Self.clock)
    whole.note(reads)
    whole.finish(layout, at: 2)
    whole.note(wide, at: 3)
    #expect(whole.newer == ["Half__c": 3] && whole.missing(of: wide) == ["Half__c"])
    let values = RecordBatch(layout: wide)
    batches.append(read: "1", to: values)
    values.row(0).presence[layout.slotCount] = RecordBatch.Presence.null
    let part = Refresh.partPrefix + "blind"
    var refresh = FilePass(
      beginning: ReadPass(entity: "T", part: part, number: 2), values, at: 4)
    refresh.note(values)
    whole.note(refresh: refresh)
    #expect(whole.newer.isEmpty && whole.missing(of: wide).isEmpty)

    let state: JSONValue = [
      "directory": "/out", "files": [], "passes": .array([whole.json, refresh.json]),
    ]
    #expect(try FilePass.passes(in: state, directory: "/out").count == 2)
    let moved = try FilePass.restarting(state, directory: "/out", entities: [])
    #expect(try Array(FilePass.passes(in: moved, directory: "/out").keys) == ["T"])
    #expect(FilePass.awaited(in: moved).isEmpty)
  }

  @Test("An edited checkpoint is refused, and one of an earlier version has no passes")
  func damaged() throws {
    var random = SplitMix(seed: 2)
    let pass = Self.random(&random)
    let state: JSONValue = ["directory": "/out", "files": [], "passes": .array([pass.json])]
    #expect(try FilePass.passes(in: state, directory: "/out") == [pass.entity: pass])
    #expect(try FilePass.passes(in: state, directory: "/other") == [:])
    #expect(try FilePass.passes(in: ["directory": "/out", "files": []], directory: "/out") == [:])
    #expect(try FilePass.passes(in: nil, directory: "/out") == [:])
    for key in ["entity", "number", "state", "row", "rows", "request", "epoch", "begun_at_ms"] {
      for value: JSONValue? in [nil, "x", -1] {
        let members = (pass.json.members ?? []).compactMap { member in
          member.name == key ? value.map { JSONMember(key, $0) } : member
        }
        // Any text is a name, and any number a time.
        if key == "entity" && value?.string != nil || key == "begun_at_ms" && value?.integer != nil
        {
          continue
        }
        #expect(throws: FileSinkError.self, "\(key)") {
          try FilePass(json: JSONValue(.object(members)))
        }
      }
    }
  }

  @Test(
    "Numbers that no run can have stored are refused",
    arguments: [
      ["number": 1 << 62], ["rows": 1 << 62], ["request": 1 << 62], ["row": 60, "rows": 50],
      ["total": 1 << 62], ["request": 0],
    ] as [[String: Int64]])
  func implausible(changes: [String: Int64]) throws {
    let sound: JSONValue = [
      "entity": "T", "number": 1, "state": "reading", "job": "750000000000001AAA", "locator": nil,
      "row": 30, "rows": 40, "total": 50, "request": 1, "epoch": 1, "next_ordinal": 7,
      "begun_at_ms": 1_771_300_995_000, "requested_at_ms": nil, "finished_at_ms": nil,
    ]
    #expect(try FilePass(json: sound).rowCount == 40)
    let members = (sound.members ?? []).map { member in
      changes[member.name].map { JSONMember(member.name, .integer($0)) } ?? member
    }
    #expect(throws: FileSinkError.self) { try FilePass(json: JSONValue(.object(members))) }
  }
}
