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

  @Test("A record is found by its first 15 characters")
  func contains() throws {
    let erased = try self.erased()
    #expect(erased.contains(Self.id) && erased.contains("003Dp0000004C9h"))
    #expect(
      !erased.contains("003Dp0000004C9iIAE") && !erased.contains("003") && !erased.contains(""))
    #expect(erased.count == 1 && ErasedRecords().isEmpty)
  }

  @Test("Events of dead letters are recognized by the object and the ID in their header")
  func letters() throws {
    let erased = try self.erased()
    let named = [14] + Array("Contact".utf8) + [2, 36] + Array(Self.id.utf8) + [0]
    let other = [22] + Array("Opportunity".utf8) + [2, 36] + Array(Self.id.utf8) + [0]
    let (own, channel) = ("/data/ContactChangeEvent", "/data/ChangeEvents")
    #expect(erased.areNamed(in: named, topic: own) && erased.areNamed(in: named, topic: channel))
    // The ID as the value of a field.
    #expect(!erased.areNamed(in: other, topic: channel))
    #expect(!erased.areNamed(in: named, topic: "/data/OpportunityChangeEvent"))
    #expect(!ErasedRecords().areNamed(in: named, topic: own))
    for end in 0..<(named.count - 4) {
      #expect(!erased.areNamed(in: Array(named[..<end]), topic: own), "\(end) bytes")
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
