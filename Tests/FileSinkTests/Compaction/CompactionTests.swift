import Checkpoint
import DurableFiles
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Compaction of real files, and what the readers of this program make of them.
@Suite("Compaction")
struct CompactionTests {
  private let directory: TemporaryDirectory
  private var compaction = ScriptedCompaction()
  private let fileSystem = SystemFileSystem()

  init() throws {
    self.directory = try TemporaryDirectory()
    self.compaction.script.root = self.directory.path
    try self.compaction.script.run(on: self.fileSystem)
  }

  private var output: String { self.directory.path + ScriptedRun.directory }
  private static let folder = "Opportunity/commit_date=2026-02-17"
  private static let stem = "opps-OpportunityChangeEvent-e1-00000000000"
  private static let joined = "\(folder)/\(stem)0-s0-r1-000000000000.ndjson.zst"

  private func content() throws -> [String: [UInt8]] {
    Dictionary(
      uniqueKeysWithValues: try Decompression.files(below: self.directory.path).map {
        ($0, try Decompression.read($0))
      })
  }

  private func exported(_ scope: ExportedFile.Scope = .present) throws -> [ExportedFile] {
    var files: [ExportedFile] = []
    try ExportedFile.visit(.records, in: self.output, pipeline: "opps", scope) { files.append($0) }
    return files
  }

  private func document() throws -> CheckpointDocument {
    let paths = StatePaths(
      directory: self.directory.path + ScriptedRun.stateDirectory, pipeline: "opps")
    return try #require(try FileCheckpointStore.peek(paths))
  }

  private func outputState() throws -> OutputState {
    try OutputState.read(
      directory: self.output, pipeline: "opps", whenMissing: .fail,
      state: self.document().sinks["files"]?.json)
  }

  private func checksums() throws -> FileChecksums {
    try FileChecksums.read(
      in: self.output, pipeline: "opps", inProgress: [], ignoringMissing: false)
  }

  @Test("The manifest has a line for each new file, with the names that it replaces")
  func manifest() throws {
    let before = try self.exported()
    try self.compaction.compact(on: self.fileSystem)
    #expect(try self.compaction.script.faults(in: self.content()) == [])
    let after = try self.exported()
    #expect(try self.exported(.written).map(\.name) == before.map(\.name))
    let joined = try #require(after.first { $0.name == Self.joined })
    #expect((joined.firstOrdinal, joined.lastOrdinal, joined.events) == (0, 7, 6))
    #expect(joined.lastReplayID == before.first { $0.lastOrdinal == 7 }?.lastReplayID)
    #expect(joined.tail == before.first { $0.lastOrdinal == 7 }?.tail)
    #expect(
      after.reduce(0) { $0 + $1.events } == before.reduce(0) { $0 + $1.events })
    #expect(after.count == 5)
    let text = try String(
      decoding: Decompression.read("\(self.output)/_manifest.ndjson"), as: UTF8.self)
    let line = try #require(text.split(separator: "\n").first { $0.contains("\"\(Self.joined)\"") })
    #expect(
      Manifest.replaced(by: try JSONValue(parsing: String(line)))
        == [0, 1, 3, 4, 6, 7].map { "\(Self.folder)/\(Self.stem)\($0).ndjson.zst" })
    let finals = try self.content().keys.filter(ModelFileSystem.isFinal)
    #expect(try Decompression.zstdTest(finals.sorted()) == 0)
  }

  @Test("Replaced files are neither lost nor unknown to status, verify and the next run")
  func readers() throws {
    try self.compaction.compact(on: self.fileSystem)
    #expect(try self.outputState().faults == [])
    #expect(try self.checksums().faults == [])
    #expect(try self.checksums().fileCount == 5)
    let verified = try OutputVerification.read(
      [.records, .redriven, .snapshots], in: self.output, pipeline: "opps", ignoringMissing: false)
    #expect((verified.fileCount, verified.faults) == (5, []))
    try self.compaction.script.run(on: self.fileSystem)
    #expect(try self.compaction.script.faults(in: self.content()) == [])
  }

  @Test("Replaced files that a copy brings back are removed if the new ones are there")
  func broughtBack() throws {
    let names = [
      "\(self.output)/\(Self.folder)/\(Self.stem)0.ndjson.zst", "\(self.output)/\(Self.joined)",
    ]
    let old = try Decompression.read(names[0])
    var smaller = self.compaction
    smaller.rotation.maxEventCount = 4
    try smaller.compact(on: self.fileSystem)
    let middle = try Decompression.read(names[1])
    try self.compaction.compact(on: self.fileSystem)
    let files = try self.content().keys.sorted()
    for (name, content) in zip(names, [old, middle]) { try self.put(content, name) }
    let reasons = try self.checksums().faults.map(\.reason)
    #expect(reasons.count == 2 && reasons.allSatisfy { $0.hasPrefix("was replaced by compact") })
    try self.compaction.script.run(on: self.fileSystem)
    #expect(try self.content().keys.sorted() == files)
    #expect(try self.compaction.script.faults(in: self.content()) == [])
    // Something else with the name of an old file is left alone.
    try self.put(old.dropLast(), names[0])
    #expect(self.failure()?.code == .unknownFile)
    // So is an old file without the new one, which has its events.
    try self.put(old, names[0])
    let new = "\(self.output)/\(Self.folder)/\(Self.stem)0-s0-r2-000000000000.ndjson.zst"
    try self.put(try Decompression.read(new).dropLast(), new)
    #expect(self.failure()?.code == .lostOutput)
    #expect(try Decompression.read(names[0]) == old)
  }

  private func failure() -> FileSinkError? {
    #expect(throws: FileSinkError.self) { try self.compaction.script.run(on: self.fileSystem) }
  }

  private func put(_ content: some Sequence<UInt8>, _ path: String) throws {
    if try self.fileSystem.size(of: path) != nil { try self.fileSystem.remove(path) }
    try OpenFile(path, [.write, .create], on: self.fileSystem).write(Array(content))
  }

  @Test("A lost or damaged compacted file is noticed; one that a loader took first is not")
  func losses() throws {
    try self.compaction.compact(on: self.fileSystem)
    let path = "\(self.output)/\(Self.joined)"
    let content = try Decompression.read(path)
    // The oldest file of the object: a loader begins with it.
    try self.fileSystem.remove(path)
    #expect(try self.outputState().faults == [])
    #expect(try self.checksums().faults.map(\.reason) == ["is missing"])
    try OpenFile(path, [.write, .create], on: self.fileSystem).write(Array(content.dropLast()))
    #expect(try self.outputState().faults.count == 1)
    let newest = "\(self.output)/Opportunity/commit_date=2026-02-18/opps-OpportunityChangeEvent"
    try self.fileSystem.remove(path)
    try OpenFile(path, [.write, .create], on: self.fileSystem).write(content)
    try self.fileSystem.remove("\(newest)-e1-000000000012-s0-r1-000000000000.ndjson.zst")
    let faults = try self.outputState().faults
    #expect(faults.count == 1 && faults[0].contains("000000000012-s0"))
  }

  @Test("A changed file is named and its folder stays as it is, and the others are compacted")
  func changed() throws {
    let path = "\(self.output)/\(Self.folder)/\(Self.stem)3.ndjson.zst"
    var content = try Decompression.read(path)
    content[content.count / 2] ^= 1
    try self.fileSystem.remove(path)
    try OpenFile(path, [.write, .create], on: self.fileSystem).write(content)
    let objects = try self.compaction.compact(on: self.fileSystem)
    #expect(objects.map(\.faults.count) == [0, 1])
    #expect(objects.last?.faults.first?.contains(path) == true)
    // The other object and the other date.
    #expect(objects.map(\.newFileCount) == [1, 1])
    #expect(try self.exported().contains { $0.name == Self.joined } == false)
    #expect(try self.content().keys.allSatisfy { !$0.contains("/Opportunity/.opps.compact/") })
    #expect(try self.checksums().faultCount == 1)
  }

  @Test("A folder with a file in progress or a folder of somebody else stays as it is")
  func busy() throws {
    let part = "\(self.output)/\(Self.folder)/.other-T-e1-000000000000.ndjson.zst.part"
    _ = try OpenFile(part, [.write, .create], on: self.fileSystem)
    _ = try self.fileSystem.makeDirectory(
      "\(self.output)/Account/commit_date=2026-02-17/subfolder")
    let objects = try self.compaction.compact(on: self.fileSystem)
    #expect(objects.map(\.busyFolderCount) == [1, 1])
    #expect(objects.map(\.newFileCount) == [0, 1])
  }

  @Test("A new folder has the files of others, and the mode of the old one")
  func others() throws {
    let folder = "\(self.output)/\(Self.folder)"
    let names = ["other-T-e1-000000000000.ndjson.zst", "notes.txt"]
    for name in names {
      try OpenFile("\(folder)/\(name)", [.write, .create], on: self.fileSystem).write([1])
    }
    #expect(chmod(folder, 0o2751) == 0)
    try self.compaction.compact(on: self.fileSystem)
    for name in names { #expect(try Decompression.read("\(folder)/\(name)") == [1]) }
    #expect(try Decompression.mode(of: folder) == 0o2751)
    #expect(
      try self.fileSystem.list(folder)?.map(\.name).sorted()
        == [
          "notes.txt", "\(Self.stem)0-s0-r1-000000000000.ndjson.zst",
          "opps-OpportunityChangeEvent-e1-000000000010.ndjson.zst", names[0],
        ].sorted())
  }

  @Test("Symbolic links are neither exchanged nor followed")
  func links() throws {
    let elsewhere = "\(self.directory.path)/elsewhere"
    let date = "\(self.output)/\(Self.folder)"
    #expect(rename(date, elsewhere) == 0 && symlink(elsewhere, date) == 0)
    let objects = try self.compaction.compact(on: self.fileSystem)
    #expect(objects.map(\.busyFolderCount) == [0, 1])
    #expect(try self.checksums().faults == [])
    #expect(try self.fileSystem.list(elsewhere)?.count == 7)
    // Another program's files behind the name of the hidden folder, and behind one in it.
    try self.put([1], "\(elsewhere)/precious")
    let hidden = "\(self.output)/Opportunity/.opps.compact"
    #expect(symlink(self.directory.path, hidden) == 0)
    try self.compaction.script.run(on: self.fileSystem)
    #expect(try Decompression.read("\(elsewhere)/precious") == [1])
    try self.fileSystem.remove(hidden)
    #expect(mkdir(hidden, 0o750) == 0 && symlink(elsewhere, "\(hidden)/link") == 0)
    try self.put([2], "\(hidden)/.DS_Store")
    try self.compaction.script.run(on: self.fileSystem)
    #expect(try Decompression.read("\(elsewhere)/precious") == [1])
    #expect(try self.checksums().faults == [])
    #expect(try self.fileSystem.status(at: hidden) == nil)
  }

  @Test("A file of others that comes just before the exchange is in the new folder")
  func lateFile() throws {
    let late = "\(self.output)/\(Self.folder)/loaded.marker"
    let fileSystem = FaultyFileSystem()
    fileSystem.fault = { _, call in
      guard call.path == "\(self.output)/\(Self.folder)", call.name == "exchange" else {
        return nil
      }
      try? self.put([1], late)
      return nil
    }
    try self.compaction.compact(on: fileSystem)
    #expect(try self.exported().contains { $0.name == Self.joined })
    #expect(try Decompression.read(late) == [1])
    #expect(try self.checksums().faults == [])
  }

  @Test("Whoever could read the old files can read the new one")
  func permissions() throws {
    for file in try self.exported() where file.name.hasPrefix(Self.folder) {
      #expect(chmod("\(self.output)/\(file.name)", 0o604) == 0)
    }
    try self.compaction.compact(on: self.fileSystem)
    #expect(try Decompression.mode(of: "\(self.output)/\(Self.joined)") == 0o604)
  }

  @Test("Nothing is changed while a run, or a reader, uses the files")
  func locked() throws {
    let before = try self.exported()
    let run = try SegmentStore.lock(
      self.output, .records, pipeline: "opps", on: self.fileSystem)
    var error = #expect(throws: FileSinkError.self) {
      try self.compaction.compact(on: self.fileSystem)
    }
    #expect(error?.code == .locked)
    _ = consume run
    let reader = try #require(FilesInUse(readingFrom: self.output))
    error = #expect(throws: FileSinkError.self) {
      try self.compaction.compact(on: self.fileSystem)
    }
    withExtendedLifetime(reader) {}
    #expect(error?.code == .locked)
    #expect(error?.message.contains("run 'compact' again later") == true)
    #expect(try self.exported() == before)
  }

  @Test("Compacted files are compacted again when more have come")
  func again() throws {
    var smaller = self.compaction
    smaller.rotation.maxEventCount = 4
    try smaller.compact(on: self.fileSystem)
    var larger = self.compaction
    larger.rotation.maxEventCount = 1000
    let objects = try larger.compact(on: self.fileSystem)
    #expect(objects.map(\.newFileCount) == [0, 1])
    #expect(try larger.script.faults(in: self.content()) == [])
    let names = try self.exported().map(\.name)
    #expect(
      names.contains("\(Self.folder)/\(Self.stem)0-s0-r2-000000000000.ndjson.zst"), "\(names)")
    #expect(try self.checksums().faults == [])
    #expect(try self.outputState().faults == [])
  }

  @Test("Names that a line replaces are found however the line is written")
  func replacedNames() {
    func names(_ text: String) -> [String] {
      Array(text.utf8).withUnsafeBufferPointer { Manifest.replaced(by: $0) }
    }
    #expect(names(#"{"name":"a","replaces":["b","c"]}"#) == ["b", "c"])
    #expect(names(#"{"name": "a", "replaces" : [ "b" ]}"#) == ["b"])
    #expect(names(#"{"name":"a","replaces":[],"resume":null}"#) == [])
    #expect(names(#"{"name":"a"}"#) == [])
    #expect(names(#"{"name":""replaces"","x":1}"#) == [])
    #expect(names(#"{"name":"a","replaces":"b"}"#) == [])
    #expect(names(#"{"name":"a","replaces":["b""#) == [])
    #expect(names("") == [])
  }

  @Test("An examination says what would be joined and changes nothing")
  func examination() throws {
    let before = try self.content()
    let document = try self.document()
    let examined = try FileCompaction(
      FileSinkConfiguration(
        directory: self.output, pipeline: "opps", org: "00D000000000001"),
      state: document.sinks["files"]?.json,
      letters: .init(
        directory: self.directory.path + ScriptedRun.deadDirectory,
        state: document.deadLetters?.json), before: nil, pause: { _ in }
    ).examine()
    #expect(try self.content() == before)
    let done = try self.compaction.compact(on: self.fileSystem)
    #expect(examined.map(\.fileCountAfter) == done.map(\.fileCountAfter))
    #expect(done.map(\.fileCountAfter) == [2, 3])
    #expect(examined.map(\.byteCount) == done.map(\.byteCount))
  }

  @Test("Dates from a given one on stay as they are")
  mutating func dates() throws {
    self.compaction.before = "2026-02-18"
    #expect(try self.compaction.compact(on: self.fileSystem).map(\.fileCountAfter) == [2, 4])
    #expect(try self.checksums().faults == [])
  }
}
