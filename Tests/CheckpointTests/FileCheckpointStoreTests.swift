import Checkpoint
import DurableFiles
import FoundationEssentials
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@Suite("Checkpoint file")
struct FileCheckpointStoreTests {
  private let root: TemporaryDirectory
  private var directory: String { self.root.path + "/a/state" }
  private var path: String { self.directory + "/opps.checkpoint.json" }

  init() throws { self.root = try TemporaryDirectory() }

  private func store(_ pipeline: String = "opps") throws -> FileCheckpointStore {
    try FileCheckpointStore(directory: self.directory, pipeline: pipeline)
  }

  private var document: CheckpointDocument {
    CheckpointDocument(
      pipeline: "opps", org: "00D000000000001",
      topics: [
        "/data/B": TopicPosition(beginningEpoch: 1, after: ReplayID([0, 255])),
        "/data/A": TopicPosition(beginningEpoch: 2),
      ],
      sinks: ["files": SinkState(["files": []])], deadLetters: SinkState(["files": []]))
  }

  private func failure(of body: () throws -> Void) -> CheckpointError? {
    do {
      try body()
      return nil
    } catch {
      return error as? CheckpointError
    }
  }

  private func put(_ text: String) throws {
    try text.write(toFile: self.path, atomically: false, encoding: .utf8)
  }

  @Test("A saved checkpoint is loaded by the same process and by the next")
  func roundTrip() throws {
    do {
      let store = try self.store()
      #expect(try store.load() == nil)
      try store.save(self.document)
      var loaded = try #require(try store.load())
      #expect(loaded.savedAt > 1_700_000_000_000)
      loaded.savedAt = 0
      #expect(loaded == self.document)
    }
    #expect(try self.store().load()?.topics == self.document.topics)
  }

  @Test("A state directory keeps a unique identity")
  func identity() throws {
    let first = try self.store().identity()
    #expect(first.utf8.count == 16)
    #expect(try self.store().identity() == first)
    let file = self.directory + "/opps.identity"
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let elsewhere = try FileCheckpointStore(directory: self.root.path + "/b", pipeline: "opps")
    #expect(try elsewhere.identity() != first)
    // What a crash has cut off, or somebody has emptied, is made anew.
    for text in ["", "abc", "\(first)\(first)\n", "not hexadecimal\n"] {
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      let new = try self.store().identity()
      #expect(new.utf8.count == 16 && new != first)
      #expect(try self.store().identity() == new)
    }
  }

  @Test("The file is human-readable, and no other file is left next to it")
  func readable() throws {
    let store = try self.store()
    try store.save(self.document)
    let text = try String(contentsOfFile: self.path, encoding: .utf8)
    #expect(text.hasPrefix("{\n  \"version\": 2,\n  \"pipeline\": \"opps\",\n  \"org\": "))
    #expect(text.contains("\"saved_at\": \"2"))
    #expect(text.hasSuffix("}\n"))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: self.directory).sorted()
        == ["opps.checkpoint.json", "opps.lock"])
  }

  @Test("A checkpoint of version 1 is loaded, and the next one has hashes of its recent events")
  func earlierVersion() throws {
    let store = try self.store()
    try self.put(
      #"""
      {
        "version": 1, "pipeline": "opps", "org": "00D000000000001",
        "saved_at": "2026-02-17T04:03:15.000Z", "saved_at_ms": 1771300995000,
        "topics": {
          "/data/A": {
            "epoch": 1, "next_ordinal": 2, "resume": "0000000000000002",
            "last_event": {"replay_id": "0000000000000002", "event_id": "b"},
            "recent": [["0000000000000001", "a"], ["0000000000000002", "b"]]
          }
        },
        "sinks": {"files": {"directory": "/out", "files": []}}
      }
      """#)
    let loaded = try #require(try store.load())
    let recent = try #require(loaded.topics["/data/A"]?.json["recent"]?.string)
    #expect(recent.utf8.count == 24)
    try store.save(loaded)
    #expect(try store.load()?.topics == loaded.topics)
    #expect(try String(contentsOfFile: self.path, encoding: .utf8).contains("\"\(recent)\""))
  }

  @Test("A checkpoint of a later version is refused, and the error says which program reads it")
  func laterVersion() throws {
    let store = try self.store()
    try self.put(#"{"version":3,"pipeline":"opps"}"#)
    let error = self.failure { _ = try store.load() }
    #expect(error?.code == .damaged)
    #expect(
      error?.message.contains("its version is 3, but this program reads versions up to 2") == true)
  }

  @Test("Lines that did not change are used again, and each checkpoint has what was saved")
  func reusedText() throws {
    let store = try self.store()
    var document = self.document
    func file(_ number: Int, bytes: Int) -> JSONValue {
      ["from": .string(".\(number)"), "to": .string("\(number)"), "length": .integer(bytes)]
    }
    func position(_ ordinal: Int64) -> TopicPosition {
      var position = TopicPosition(beginningEpoch: 1, after: ReplayID([1]))
      position.nextOrdinal = ordinal
      return position
    }
    var files = (0..<5).map { file($0, bytes: 1) }
    for turn in 0..<12 {
      switch turn {
      case 3: files.remove(at: 1)
      case 6: files.insert(file(9, bytes: 2), at: 0)
      case 8: files = []
      case 9: files = [file(7, bytes: turn)]
      default: if !files.isEmpty { files[turn % files.count] = file(turn, bytes: turn) }
      }
      document.topics["/data/\(turn % 4)"] = position(Int64(turn))
      if turn == 7 { document.topics["/data/A"] = nil }
      let state: JSONValue = ["directory": "/out", "files": .array(files), "gap_events": [:]]
      document.sinks = ["files": SinkState(state), "other": SinkState(["files": [7]])]
      document.deadLetters = turn == 5 ? nil : SinkState(["files": .array(files.reversed())])
      try store.save(document)
      var loaded = try #require(try store.load())
      loaded.savedAt = 0
      #expect(loaded == document)
    }
  }

  @Test("A second run of a pipeline is refused with the process ID; another pipeline can run")
  func locked() throws {
    let first = try self.store()
    let error = self.failure { _ = try self.store() }
    #expect(error?.code == .alreadyRunning)
    #expect(error?.processID == getpid())
    #expect(error?.message.contains("pid \(getpid())") == true)
    _ = try self.store("other")
    withExtendedLifetime(first) {}
  }

  @Test("The lock is released when its holder ends, whatever process ID the file still contains")
  func lockIsFreed() throws {
    do { _ = try self.store() }
    _ = try self.store()
  }

  @Test(
    "A file that is not a checkpoint is refused with its path and the remedy",
    arguments: [
      "", "{", "[]", "{}", "{\"version\":2}", "{\"version\":0}", "\u{0}\u{0}",
      #"{"version":1,"pipeline":"opps","org":"x","saved_at_ms":1,"topics":[],"sinks":{}}"#,
      #"{"version":1,"pipeline":"opps","org":7,"saved_at_ms":1,"topics":{},"sinks":{}}"#,
    ])
  func damaged(text: String) throws {
    let store = try self.store()
    try self.put(text)
    let error = self.failure { _ = try store.load() }
    #expect(error?.code == .damaged)
    #expect(error?.message.contains(self.path) == true)
    #expect(error?.message.contains("restore") == true)
  }

  @Test("A checkpoint truncated at any byte is refused, and never read as another one")
  func truncated() throws {
    let store = try self.store()
    try store.save(self.document)
    let text = try String(contentsOfFile: self.path, encoding: .utf8)
    for length in 0..<(text.utf8.count - 2) {
      try self.put(String(text.prefix(length)))
      #expect(self.failure { _ = try store.load() }?.code == .damaged, "\(length) bytes")
    }
  }

  @Test("The checkpoint of another pipeline is refused")
  func mismatch() throws {
    var document = self.document
    document.pipeline = "other"
    let store = try self.store()
    try store.save(document)
    #expect(self.failure { _ = try store.load() }?.code == .mismatch)
  }

  @Test("Names that cannot be file names are refused", arguments: ["", "a/b", "../x", ".x", "a\0"])
  func names(name: String) {
    #expect(self.failure { _ = try self.store(name) }?.code == .mismatch)
  }

  @Test("A process stops when its state directory is removed")
  func removed() throws {
    let store = try self.store()
    try store.save(self.document)
    try FileManager.default.removeItem(atPath: self.directory)
    let error = self.failure { try store.save(self.document) }
    #expect(error?.code == .io)
    #expect(error?.message.contains(self.directory) == true)
    // Also when somebody else has made it again: the lock is not ours any more.
    try FileManager.default.createDirectory(
      atPath: self.directory, withIntermediateDirectories: true)
    #expect(self.failure { try store.save(self.document) }?.code == .io)
  }

  @Test("The error names a directory that cannot be created")
  func noDirectory() throws {
    let file = self.root.path + "/file"
    try "x".write(toFile: file, atomically: false, encoding: .utf8)
    let error = self.failure {
      _ = try FileCheckpointStore(directory: file + "/state", pipeline: "opps")
    }
    #expect(error?.code == .io)
    #expect(error?.message.contains(file) == true)
  }

  @Test("A pipe in place of the checkpoint is an error and does not block the program")
  func pipeInPlace() throws {
    let store = try self.store()
    #expect(mkfifo(self.path, 0o600) == 0)
    #expect(self.failure { _ = try store.load() }?.message.contains("opps.checkpoint.json") == true)
  }

  @Test("A symbolic link under the temporary file's name is removed, not followed")
  func plantedTemporary() throws {
    let directory = try TemporaryDirectory()
    let victim = "\(directory.path)/victim"
    let planted = "\(directory.path)/.opps.checkpoint.json.tmp"
    #expect(symlink(victim, planted) == 0)
    let store = try FileCheckpointStore(directory: directory.path, pipeline: "opps")
    var document = CheckpointDocument(pipeline: "opps", org: "00D")
    document.instance = "https://acme.my.salesforce.com"
    try store.save(document)
    #expect(try store.load()?.org == "00D")
    #expect(try store.load()?.instance == document.instance)
    #expect(try SystemFileSystem().size(of: victim) == nil)
    #expect(try SystemFileSystem().size(of: planted) == nil)
  }

  @Test("A symbolic link in place of the lock is refused")
  func plantedLock() throws {
    let directory = try TemporaryDirectory()
    let victim = "\(directory.path)/victim"
    #expect(symlink(victim, "\(directory.path)/opps.lock") == 0)
    #expect(throws: CheckpointError.self) {
      try FileCheckpointStore(directory: directory.path, pipeline: "opps")
    }
    #expect(try SystemFileSystem().size(of: victim) == nil)
  }
}
