import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// What the files say of records, by this program and by the view of current records.
@Suite("The copy that files hold") struct FileCopyTests {
  private let directory = try! TemporaryDirectory()  // A machine without /tmp runs no tests.

  private static let layout = RecordLayout(
    topic: RandomStream.topic, schemaID: "s", entity: RandomStream.entity, family: .changeEvent,
    slotCount: MetadataSlot.count + 3,
    fieldOrder: [MetadataSlot.count, MetadataSlot.count + 1, MetadataSlot.count + 2],
    columns: Column.changeMetadata(topic: RandomStream.topic, schemaID: "s")
      + RandomStream.columns.enumerated().map { Column($1, MetadataSlot.count + $0, .string) })

  private func source(state: JSONValue? = nil) -> FileCopy.Source {
    FileCopy.Source(
      directory: self.directory.path, pipeline: RandomStream.pipeline,
      entity: RandomStream.entity, topic: RandomStream.topic, org: "00D", state: state)
  }

  /// A JSON line for each record that is there, as `fold_files.py` prints it.
  private func folded(
    _ limits: EntrySorter.Limits = .init(), state: JSONValue? = nil
  ) throws -> [JSONValue] {
    let columns = try ComparedColumns(Self.layout)
    let copy = try FileCopy.read(
      self.source(state: state), columns,
      scratch: ScratchFiles(directory: self.directory.path + "/state"),
      limits: limits)
    let reader = EntryReader(copy.records)
    var rows: [JSONValue] = []
    while try reader.next() {
      let patch = RecordPatch(reader.value)
      if patch.effect == .deletion { continue }
      var cells: [JSONValue] = Array(repeating: nil, count: columns.count)
      var failure: (any Error)?
      RecordPatch.forEachCell(of: reader.value) { column, state, range in
        if state.isNull { return }
        do {
          cells[column] = try JSONValue(parsing: Array(reader.value[range]))
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      rows.append(
        JSONValue(
          .array(
            [
              .string(String(decoding: reader.key, as: UTF8.self)),
              .boolean(patch.flags.contains(.isPartial)),
              .boolean(patch.flags.contains(.isStale)),
            ] + cells)))
    }
    return rows
  }

  @Test("Records equal the result of the documented query over the same files", arguments: 0..<12)
  func asDocumented(seed: UInt64) throws {
    var stream = RandomStream(seed: seed)
    try stream.write(to: self.directory.path, fileCount: 4 + Int(seed) * 3)
    let catalog = ColumnCatalog(directory: self.directory.path, pipeline: RandomStream.pipeline)
    for isOfReads in [false, true] {
      try catalog.add(
        Self.layout, isOfReads: isOfReads, entityDirectory: RandomStream.entity)
    }
    let expected = try PythonScript.run(
      "fold_files.py", [self.directory.path, RandomStream.entity] + RandomStream.columns
    ).split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    try #require(!expected.isEmpty)
    let rows = try self.folded(.init(byteCount: 1000, fanIn: 2))
    for (row, other) in zip(rows, expected) { #expect(row == other) }
    #expect(rows.count == expected.count)
    // The memory that it has makes no difference.
    #expect(try self.folded() == rows)
  }

  @Test("An image from before a field was added does not remove what a later read has")
  func imagesOfOlderSchemas() throws {
    let stream = RandomStream(seed: 1)
    func line(_ id: Int, _ type: String, _ second: Int, _ values: [JSONMember] = []) -> String {
      let time = JSONValue.string("2026-02-17T04:03:\(second).000Z")
      let isRead = type == "SNAPSHOT"
      var members = [
        JSONMember("_kind", isRead ? "snapshot" : "change"),
        JSONMember("_change_type", .string(type)),
        JSONMember("_record_id", .string("a0R0000000000\(id)AAA")),
        JSONMember(isRead ? "_system_modstamp" : "_commit_timestamp", time),
      ]
      if isRead { members.append(JSONMember("_read_at", "2026-02-17T05:00:00.000Z")) }
      return JSONValue(.object(members + values)).text(.compact)
    }
    // C is the field that was added.
    let image = [JSONMember("A", "image")]
    let read = [JSONMember("A", "read"), JSONMember("B", nil), JSONMember("C", "new")]
    let reads = [
      line(11, "SNAPSHOT", 40, read), line(12, "SNAPSHOT", 40, read),
      line(13, "SNAPSHOT", 38, read), line(14, "SNAPSHOT", 20, read),
    ]
    let changes = [
      line(11, "CREATE", 40, image),
      line(12, "DELETE", 10), line(12, "UNDELETE", 40, image),
      // Deleted before the first file.
      line(13, "UNDELETE", 40, image),
      // Deleted after the read.
      line(14, "DELETE", 21), line(14, "UNDELETE", 40, image),
    ]
    var manifest = try stream.writeFile(
      of: reads, to: self.directory.path, first: (1, 0), pass: .init(number: 1, request: 1))
    manifest += try stream.writeFile(of: changes, to: self.directory.path, first: (1, 0))
    try manifest.write(
      toFile: "\(self.directory.path)/_manifest.ndjson", atomically: false, encoding: .utf8)
    #expect(
      try self.folded() == [
        ["a0R000000000011AAA", false, false, "read", nil, "new"],
        ["a0R000000000012AAA", false, false, "read", nil, "new"],
        ["a0R000000000013AAA", false, false, "read", nil, "new"],
        ["a0R000000000014AAA", false, false, "image", nil, nil],
      ])
  }

  @Test("A record that a gap event brings back has the values that it had")
  func broughtBack() throws {
    let stream = RandomStream(seed: 1)
    let lines = [
      #"""
      {"_kind":"change","_change_type":"CREATE","_record_id":"a0R0000000000011AAA",\#
      "_commit_timestamp":"2026-02-17T04:03:10.000Z","A":"image"}
      """#,
      #"""
      {"_kind":"change","_change_type":"DELETE","_record_id":"a0R0000000000011AAA",\#
      "_commit_timestamp":"2026-02-17T04:03:20.000Z"}
      """#,
      #"""
      {"_kind":"gap","_change_type":"GAP_UNDELETE","_record_id":"a0R0000000000011AAA",\#
      "_commit_timestamp":"2026-02-17T04:03:30.000Z"}
      """#,
    ]
    let manifest = try stream.writeFile(of: lines, to: self.directory.path, first: (1, 0))
    try manifest.write(
      toFile: "\(self.directory.path)/_manifest.ndjson", atomically: false, encoding: .utf8)
    let catalog = ColumnCatalog(directory: self.directory.path, pipeline: RandomStream.pipeline)
    try catalog.add(Self.layout, entityDirectory: RandomStream.entity)
    let rows = try self.folded()
    #expect(rows == [["a0R0000000000011AAA", false, true, "image", nil, nil]])
    let view = try PythonScript.run(
      "fold_files.py", [self.directory.path, RandomStream.entity] + RandomStream.columns)
    #expect(try JSONValue(parsing: Array(view.utf8)) == rows[0])
  }

  @Test(
    "A refresh gives records values, but makes none exist and brings none back",
    arguments: [true, false])
  func refreshes(isWhole: Bool) throws {
    let stream = RandomStream(seed: 1)
    func line(_ id: Int, _ type: String, second: Int, _ value: String?) -> String {
      let isRefresh = type == "SNAPSHOT_REFRESH"
      let members = [
        JSONMember("_topic", .string(RandomStream.topic)), JSONMember("_kind", "snapshot"),
        JSONMember("_change_type", .string(type)),
        JSONMember("_record_id", .string("a0R0000000000\(id)AAA")),
        JSONMember("_system_modstamp", .string("2026-02-17T04:03:\(second).000Z")),
        JSONMember("_read_at", .string("2026-02-17T05:00:\(second).000Z")),
        JSONMember("_changed_fields", isRefresh && !isWhole ? ["A"] : nil),
        JSONMember("A", value.map { .string($0) } ?? nil),
      ].filter { $0.value != nil }
      return JSONValue(.object(members)).text(.compact)
    }
    let passes = [
      [11, 12, 13].map { line($0, "SNAPSHOT", second: 10, "read") },
      [line(12, "SNAPSHOT_DELETE", second: 20, nil), line(13, "SNAPSHOT_DELETE", second: 20, nil)],
      // The last one was never in the copy.
      [11, 12, 13, 14].map { line($0, "SNAPSHOT_REFRESH", second: 30, "refreshed") },
      [line(13, "SNAPSHOT", second: 40, "back")],
    ]
    var manifest = ""
    for (index, lines) in passes.enumerated() {
      manifest += try stream.writeFile(
        of: lines, to: self.directory.path, first: (1, 0),
        pass: .init(number: index + 1, request: 1))
    }
    try manifest.write(
      toFile: "\(self.directory.path)/_manifest.ndjson", atomically: false, encoding: .utf8)
    let catalog = ColumnCatalog(directory: self.directory.path, pipeline: RandomStream.pipeline)
    for isOfReads in [false, true] {
      try catalog.add(Self.layout, isOfReads: isOfReads, entityDirectory: RandomStream.entity)
    }
    let rows = try self.folded()
    #expect(
      rows == [
        ["a0R000000000011AAA", false, false, "refreshed", nil, nil],
        ["a0R000000000013AAA", false, false, "back", nil, nil],
      ])
    let view = try PythonScript.run(
      "fold_files.py", [self.directory.path, RandomStream.entity] + RandomStream.columns)
    #expect(
      try view.split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) } == rows)
    let changes = try ViewFiles.query(
      DuckDBViews.changesName(of: RandomStream.entity), of: self.directory.path)
    let id = try #require(changes.names.firstIndex(of: "id"))
    // A refresh without a list of fields names none that it found changed.
    #expect(changes.rows.map { $0[id] } == (isWhole ? [] : ["a0R000000000011AAA"]))
  }

  @Test("A line that this program cannot have written is refused by file and line")
  func hostileLine() throws {
    var stream = RandomStream(seed: 3)
    try stream.write(to: self.directory.path, fileCount: 1)
    let name = try #require(
      try Decompression.files(below: self.directory.path).first { $0.hasSuffix(".zst") })
    for line in ["[]", #"{"_kind":"other"}"#, #"{"_kind":"change","_change_type":"UPDATE"}"#] {
      let good = #"{"_kind":"overflow"}"#
      try Data(SegmentLinesTests.frame("\(good)\n\(line)\n")).write(to: URL(fileURLWithPath: name))
      let error = try #require(throws: FileSinkError.self) { try self.folded() }
      #expect(error.code == .inconsistent && error.message.contains("\(name) line 2: "))
    }
    try FileManager.default.removeItem(atPath: name)
    let error = try #require(throws: FileSinkError.self) { try self.folded() }
    #expect(error.code == .lostOutput && error.message.contains(name))
  }

  @Test("A lost file does not matter once all records have been read after it")
  func coveredLoss() throws {
    var stream = RandomStream(seed: 2)
    try stream.write(to: self.directory.path, fileCount: 8)
    var pass = FilePass(
      beginning: ReadPass(entity: RandomStream.entity, number: 9),
      RecordBatch(layout: Self.layout), at: 0)
    (pass.epoch, pass.nextOrdinal) = (1, 1)
    pass.state = .complete
    func state(finishedAt: Int64?) -> JSONValue {
      pass.finishedAt = finishedAt
      return ["directory": .string(self.directory.path), FilePass.key: [pass.json]]
    }
    let all = try self.folded(state: state(finishedAt: 1))
    let files = try Decompression.files(below: self.directory.path)
      .filter { path in
        // Files of records have "-s" in their names; the directory's name is random.
        path.hasSuffix(".zst") && path.split(separator: "/").last?.contains("-s") == false
      }.sorted()
    // Its first event has number 0, so the pass stands behind it.
    try FileManager.default.removeItem(atPath: try #require(files.first))
    #expect(throws: FileSinkError.self) { try self.folded() }
    #expect(throws: FileSinkError.self) { try self.folded(state: state(finishedAt: nil)) }
    #expect(try self.folded(state: state(finishedAt: 1)).count <= all.count)
    try FileManager.default.removeItem(atPath: try #require(files.last))
    let error = #expect(throws: FileSinkError.self) {
      try self.folded(state: state(finishedAt: 1))
    }
    #expect(error?.code == .lostOutput)
  }

  @Test("The durable part of a file in progress counts, whether or not the file has its final name")
  func inProgress() throws {
    var stream = RandomStream(seed: 4)
    try stream.write(to: self.directory.path, fileCount: 5)
    let all = try self.folded()
    let manifest = "\(self.directory.path)/_manifest.ndjson"
    var lines = try String(contentsOfFile: manifest, encoding: .utf8).split(separator: "\n")
    let place = try #require(lines.lastIndex { !$0.contains(#""redriven":true"#) })
    let last = try JSONValue(parsing: Array(lines.remove(at: place).utf8))
    try (lines.joined(separator: "\n") + "\n").write(
      toFile: manifest, atomically: false, encoding: .utf8)
    let name = try #require(last["name"]?.string)
    let byteCount = try #require(last["bytes"]?.integer)
    let record = SegmentRecord(
      part: SegmentName.partPath(forFinal: name), name: name, byteCount: Int(byteCount),
      sha256: last["sha256"]?.string ?? "", manifest: last, isClosing: false)
    let state: JSONValue = ["directory": .string(self.directory.path), "files": [record.json]]
    #expect(try self.folded() != all)
    #expect(try self.folded(state: state) == all)
    let part = "\(self.directory.path)/\(record.part)"
    try FileManager.default.moveItem(atPath: "\(self.directory.path)/\(name)", toPath: part)
    // Behind what is durable stands what a run has written since.
    let file = try #require(FileHandle(forWritingAtPath: part))
    try file.truncate(atOffset: UInt64(record.committedByteCount))
    try file.seekToEnd()
    try file.write(contentsOf: Data([1, 2, 3, 4, 5]))
    try file.close()
    #expect(try self.folded(state: state) == all)
  }

  @Test("Stages that remove the columns needed for merging are named")
  func unverifiable() throws {
    let layout = Self.layout.with(columns: Self.layout.columns.filter { $0.name != "_kind" })
    let error = try #require(throws: FileSinkError.self) { try ComparedColumns(layout) }
    #expect(error.code == .unverifiable && error.message.contains("_kind"))
  }
}
