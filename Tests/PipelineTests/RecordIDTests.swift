import Testing

@testable import Pipeline

@Suite("Record IDs")
struct RecordIDTests {
  @Test(
    "An ID with 15 characters is the one with 18",
    arguments: [
      ("003Dp0000004C9h", "003Dp0000004C9hIAE"), ("005Dp00000000WM", "005Dp00000000WMIAY"),
      ("00DDp00002GtEJW", "00DDp00002GtEJWMA3"), ("abcdefghijklmno", "abcdefghijklmnoAAA"),
      ("ABCDEFGHIJKLMNO", "ABCDEFGHIJKLMNO555"),
    ])
  func forms(short: String, long: String) throws {
    #expect(try RecordID(short).description == long)
    #expect(try RecordID(long) == RecordID(short))
    #expect(try RecordID(short + long.suffix(3).lowercased()) == RecordID(short))
    #expect(try RecordID(long).keyPrefix == String(long.prefix(3)))
  }

  @Test(
    "Anything else is refused, with the reason",
    arguments: [
      ("", "15 or 18 characters"), ("003Dp0000004C9", "15 or 18 characters"),
      ("003Dp0000004C9hIAEX", "15 or 18 characters"),
      ("003Dp0000004C9-", "letters and digits only"),
      ("003Dp000000 C9h", "letters and digits only"),
      ("003Dp00000é4C9", "letters and digits only"),
      ("003Dp0000004C9hIAF", "do not fit"), ("003dp0000004c9hIAE", "do not fit"),
    ])
  func mistakes(text: String, reason: String) {
    let fault = #expect(throws: RecordID.Fault.self) { try RecordID(text) }
    #expect(fault?.reason.contains(reason) == true, "\(text): \(fault?.reason ?? "")")
  }
}

@Suite("Erased records")
struct ErasedRecordsTests {
  private static let id = "003Dp0000004C9hIAE"

  private func erased() throws -> ErasedRecords {
    var erased = ErasedRecords()
    erased.insert(try RecordID(Self.id), of: "Contact")
    return erased
  }

  @Test("A record is found by its object and its first 15 characters")
  func contains() throws {
    let erased = try self.erased()
    func contains(_ id: String) -> Bool { erased.contains(id, of: "Contact") }
    #expect(contains(Self.id) && contains("003Dp0000004C9h"))
    #expect(!contains("003Dp0000004C9iIAE") && !contains("003") && !contains(""))
    #expect(!erased.contains(Self.id, of: "Station__c"))
    #expect(erased.count == 1 && ErasedRecords().isEmpty)
  }

  private static let (own, channel) = ("/data/ContactChangeEvent", "/data/ChangeEvents")

  /// The bytes of a change event: header and the rest.
  private func event(_ entity: String, _ ids: [String], rest: String = "rest") -> [UInt8] {
    func text(_ text: String) -> [UInt8] { [UInt8(text.utf8.count * 2)] + Array(text.utf8) }
    return text(entity) + (ids.isEmpty ? [] : [UInt8(ids.count * 2)]) + ids.flatMap(text) + [0]
      + Array(rest.utf8)
  }

  @Test("An event of a dead letter is about the records in its header, and no others")
  func letters() throws {
    let erased = try self.erased()
    let named = self.event("Contact", [Self.id])
    for topic in [Self.own, Self.channel] {
      #expect(erased.remainder(of: named, topic: topic) == .nothing)
      // The ID as the value of a field, such as ReportsToId.
      let other = self.event("Contact", ["003Dp0000004C9gIAE"], rest: "\u{24}\(Self.id)")
      #expect(erased.remainder(of: other, topic: topic) == .all)
    }
    let opportunity = self.event("Opportunity", [Self.id])
    #expect(erased.remainder(of: opportunity, topic: Self.channel) == .all)
    #expect(ErasedRecords().remainder(of: named, topic: Self.own) == .all)
    #expect(erased.remainder(of: named, topic: "/event/Contact__e") == .all)
  }

  @Test("An event about several records keeps the others, whatever the form of the list")
  func sharedLetters() throws {
    let erased = try self.erased()
    let ids = ["003Dp0000004C9gIAE", "003Dp0000004C9iIAE"]
    let left = ErasedRecords.Remainder.others(self.event("Contact", ids))
    let shared = self.event("Contact", [ids[0], Self.id, ids[1]])
    #expect(erased.remainder(of: shared, topic: Self.own) == left)
    // Two blocks, the first with a negative count and its size.
    let first = Array(self.event("Contact", [ids[0]]).dropFirst(9).dropLast(5))
    let second = self.event("Contact", [Self.id, ids[1]]).dropFirst(8)
    let name = Array(self.event("Contact", []).prefix(8))
    let blocks: [UInt8] = name + [1, UInt8(first.count * 2)] + first + second
    #expect(erased.remainder(of: blocks, topic: Self.own) == left)
  }

  @Test("If a header cannot be read, the ID anywhere after the object's name counts")
  func damagedLetters() throws {
    let erased = try self.erased()
    let named = self.event("Contact", [Self.id], rest: "")
    for end in 0..<named.count {
      let isNamed = end >= 8 + 2 + 15
      let found = erased.remainder(of: Array(named[..<end]), topic: Self.own)
      #expect(found == (isNamed ? .nothing : .all), "\(end) bytes")
    }
    for bytes in [[0x80, 0x80], [14], [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]] as [[UInt8]]
    {
      #expect(erased.remainder(of: bytes, topic: Self.own) == .all)
      #expect(erased.remainder(of: bytes + Array(Self.id.utf8), topic: Self.own) == .nothing)
    }
  }

  @Test("Rows of erased records do not reach the first stage, and their events stay")
  func rows() throws {
    let layout = RecordLayout(
      topic: "/data/ContactChangeEvent", schemaID: "s", entity: "Contact", family: .changeEvent,
      slotCount: MetadataSlot.count, fieldOrder: [], columns: [])
    let batch = RecordBatch(layout: layout)
    for id in ["003Dp0000004C9gIAE", Self.id, "003Dp0000004C9iIAE"] {
      let row = batch.addRow()
      let range = Array(id.utf8).withUnsafeBufferPointer { batch.append($0) }
      batch.row(row).set(MetadataSlot.recordID, to: range)
      batch.events.append(
        RecordBatch.Event(
          firstRow: row, rowCount: 1, replayID: range, eventID: range, commitTimestamp: 0,
          kind: .change))
    }
    let chain = StageChain([])
    try chain.apply(to: batch)
    #expect(batch.rowCount == 3)
    chain.erased = try self.erased()
    try chain.apply(to: batch)
    #expect(batch.events.map(\.rowCount) == [1, 0, 1] && batch.rowCount == 2)
    #expect(chain.takeLeftOutCount() == 1)
  }
}
