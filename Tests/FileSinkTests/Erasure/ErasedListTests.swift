import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("The list of erased records")
struct ErasedListTests {
  private static let path = "/out/_erased.ndjson"
  private let fileSystem = ModelFileSystem()

  private var list: ErasedList { ErasedList(directory: "/out", fileSystem: self.fileSystem) }

  private static func records(_ random: inout SplitMix, count: Int) throws -> [RecordID] {
    let characters = Array("0123456789ABCXYZabcxyz")
    return try (0..<count).map { _ in
      try RecordID(
        String((0..<15).map { _ in characters.randomElement(using: &random) ?? "0" }))
    }
  }

  private func write(_ text: String) throws {
    try self.fileSystem.makeDirectories("/out")
    let file = try OpenFile(temporary: Self.path, on: self.fileSystem)
    try file.write(Array(text.utf8))
  }

  @Test("Records that were added are read back, each once", arguments: 0..<20 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var expected: Set<RecordID> = []
    for _ in 0..<4 {
      let records = try Self.records(&random, count: Int.random(in: 0...20, using: &random))
      let again = expected.prefix(3)
      try self.list.add(records + again, of: "Contact", now: 1_771_300_995_000)
      expected.formUnion(records)
      #expect(Set(try self.list.entries().map(\.record)) == expected)
      #expect(try self.list.entries().count == expected.count)
      let read = try self.list.records()
      #expect(expected.allSatisfy { read.contains($0.description, of: "Contact") })
      self.fileSystem.powerCut(.nothing)
      #expect(try self.list.records() == read)
    }
  }

  @Test("Without a list, no record is erased; nothing to add makes no list")
  func nothing() throws {
    #expect(try self.list.records().isEmpty)
    try self.list.add([], of: "Contact", now: 0)
    #expect(self.fileSystem.files.isEmpty)
  }

  @Test(
    "A list that was edited ends with an error that names the line",
    arguments: [
      "{}", "[]", "x", "{\"entity\":\"Contact\"}", "\u{0}",
      "{\"entity\":\"\",\"record_id\":\"003\"}",
      "{\"entity\":\"Contact\",\"record_id\":\"003Dp0000004C9hIAF\",\"erased_at\":\"2026-02-17T04:03:15.000Z\"}",
      "{\"entity\":\"Contact\",\"record_id\":\"003Dp0000004C9hIAE\",\"erased_at\":\"yesterday\"}",
      "{\"entity\":1,\"record_id\":[],\"erased_at\":{}}",
    ])
  func hostile(line: String) throws {
    let good = ErasedList.Entry(
      entity: "Contact", record: try RecordID("003Dp0000004C9h"), time: "2026-02-17T04:03:15.000Z")
    try self.write(good.json.text(.compact) + "\n" + line + "\n")
    let error = #expect(throws: FileSinkError.self) { try self.list.records() }
    #expect(error?.code == .inconsistent && error?.message.contains("line 2") == true)
    #expect(throws: FileSinkError.self) {
      try self.list.add([try RecordID("003Dp0000004C9i")], of: "Contact", now: 0)
    }
  }

  @Test("A list that is cut at any place is refused, or has the records before")
  func truncated() throws {
    var random = SplitMix(seed: 7)
    try self.list.add(try Self.records(&random, count: 3), of: "Contact", now: 0)
    let text = try #require(self.fileSystem.files[Self.path])
    let entries = try self.list.entries()
    for end in text.indices {
      try self.write(String(decoding: text[..<end], as: UTF8.self))
      if let found = try? self.list.entries() { #expect(entries.starts(with: found)) }
    }
  }

  @Test("After a kill or power cut at any call, the list is the old one or the new one")
  func crashes() throws {
    var random = SplitMix(seed: 9)
    let records = try Self.records(&random, count: 4)
    try self.list.add(Array(records[..<2]), of: "Contact", now: 0)
    let counting = self.fileSystem.copy()
    try ErasedList(directory: "/out", fileSystem: counting).add(records, of: "Contact", now: 1)
    for call in 1...counting.callCount {
      for isCut in [false, true] {
        let fileSystem = self.fileSystem.copy()
        let list = ErasedList(directory: "/out", fileSystem: fileSystem)
        fileSystem.diesAtCall = call
        _ = try? list.add(records, of: "Contact", now: 1)
        if isCut { fileSystem.powerCut(.nothing) } else { fileSystem.kill() }
        #expect([2, 4].contains(try list.entries().count), "call \(call)")
        try list.add(records, of: "Contact", now: 1)
        #expect(try list.entries().count == 4)
        fileSystem.kill()
      }
    }
  }
}
