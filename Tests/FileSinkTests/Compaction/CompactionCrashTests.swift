import DurableFiles
import TestSupport
import Testing

@testable import FileSink

@Suite("Compaction that ends at every call")
struct CompactionCrashTests {
  private let compaction = ScriptedCompaction()

  /// A file system with the files of a run, and nobody at work.
  private func fileSystem() throws -> ModelFileSystem {
    let fileSystem = ModelFileSystem()
    try self.compaction.script.run(on: fileSystem)
    fileSystem.kill()
    return fileSystem
  }

  /// Looks at the folders before each call, as readers do at any time.
  private final class Reader {
    private let compaction: ScriptedCompaction
    private var last: Set<String> = []
    private(set) var faults: [String] = []
    /// Different sets of files.
    private(set) var count = 0

    init(_ compaction: ScriptedCompaction) { self.compaction = compaction }

    func look(_ fileSystem: ModelFileSystem, _ moment: String) {
      let files = fileSystem.files
      let names = Set(self.compaction.visible(files).keys)
      guard names != self.last else { return }
      self.last = names
      self.count += 1
      do {
        self.faults += try self.compaction.faults(ofReader: files).map { "\(moment): \($0)" }
      } catch {
        self.faults.append("\(moment): \(error)")
      }
    }
  }

  @Test("Readers see the old folder or the new one before each call, and each event once")
  func readers() throws {
    let fileSystem = try self.fileSystem()
    let before = self.compaction.visible(fileSystem.files)
    let reader = Reader(self.compaction)
    fileSystem.observer = { [unowned fileSystem] in
      reader.look(fileSystem, "call \(fileSystem.callCount)")
    }
    let objects = try self.compaction.compact(on: fileSystem)
    fileSystem.observer = nil
    reader.look(fileSystem, "the end")
    #expect(reader.faults + fileSystem.violations == [])
    // One state for each exchange, and the one before.
    #expect(reader.count == 4)
    #expect(try self.compaction.script.faults(in: fileSystem.files) == [])
    let after = self.compaction.visible(fileSystem.files)
    // Event 9 is a dead letter, so 10 and 11 stay apart.
    #expect(
      Set(after.keys).subtracting(before.keys) == [
        "Account/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000002-s0-r1-000000000000.ndjson.zst",
        "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000-s0-r1-000000000000.ndjson.zst",
        "Opportunity/commit_date=2026-02-18/opps-OpportunityChangeEvent-e1-000000000012-s0-r1-000000000000.ndjson.zst",
      ])
    #expect(
      objects.map { [$0.fileCount, $0.replacedFileCount, $0.newFileCount, $0.busyFolderCount] }
        == [[4, 3, 1, 0], [9, 8, 2, 0]])
    // Nothing more to do.
    fileSystem.kill()
    #expect(try self.compaction.compact(on: fileSystem).allSatisfy { $0.newFileCount == 0 })
    #expect(self.compaction.visible(fileSystem.files) == after)
  }

  @Test(
    "After a kill or power cut at any call, readers see each event once, and the next command completes",
    arguments: 0..<(ExplorationSize.isFull ? 6 : 1))
  func crashes(variant: Int) throws {
    let original = try self.fileSystem()
    let counting = original.copy()
    try self.compaction.compact(on: counting)
    let callCount = counting.callCount
    #expect(callCount > 60)
    for call in 1...callCount {
      let fileSystem = original.copy()
      let way = call + variant
      let completesByRun = way % 2 == 0
      let reader = Reader(self.compaction)
      fileSystem.observer = { [unowned fileSystem] in reader.look(fileSystem, "call \(call)") }
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = call % 4 < 2
      #expect(throws: (any Error).self) { try self.compaction.compact(on: fileSystem) }
      switch way % 3 {
      case 0: fileSystem.kill()
      case 1: fileSystem.powerCut(.nothing)
      default: fileSystem.powerCut(.random(SplitMix(seed: UInt64(variant * 10_000 + call))))
      }
      reader.look(fileSystem, "after a crash at call \(call)")
      try self.checkList(fileSystem, "crash at call \(call)")
      // A second crash while the first is recovered from.
      fileSystem.diesAtCall = 1 + call * 7 % 60
      _ = try? self.continued(fileSystem, completesByRun)
      if call % 4 < 2 { fileSystem.kill() } else { fileSystem.powerCut(.nothing) }
      reader.look(fileSystem, "after two crashes, the first at call \(call)")
      try self.checkList(fileSystem, "second crash after one at call \(call)")
      try self.continued(fileSystem, completesByRun)
      fileSystem.observer = nil
      reader.look(fileSystem, "in the end")
      let faults = try self.compaction.script.faults(in: fileSystem.files)
      #expect(
        faults + reader.faults + fileSystem.violations == [], "call \(call), variant \(variant)")
      if !completesByRun {
        #expect(
          self.compaction.visible(fileSystem.files).keys.contains { $0.contains("-s0-") },
          "call \(call)")
      }
    }
  }

  private func continued(_ fileSystem: ModelFileSystem, _ byRun: Bool) throws {
    if byRun {
      try self.compaction.script.run(on: fileSystem)
    } else {
      try self.compaction.compact(on: fileSystem)
    }
  }

  /// The list that `status` and `verify` read has the files that are there.
  private func checkList(_ fileSystem: ModelFileSystem, _ moment: String) throws {
    let observer = fileSystem.observer
    fileSystem.observer = nil
    defer { fileSystem.observer = observer }
    var names: [String] = []
    let list = try FileList(in: ScriptedRun.directory, pipeline: "opps", on: fileSystem)
    try list.visitPresent { _, name in names.append(String(decoding: name, as: UTF8.self)) }
    #expect(
      names.sorted() == self.compaction.visible(fileSystem.files).keys.sorted(), "\(moment)")
    fileSystem.kill()
  }

  @Test(
    "A file system without links or exchange is refused, and nothing is changed",
    arguments: ["link", "exchange"])
  func refusedCalls(call: String) throws {
    let fileSystem = try self.fileSystem()
    let before = fileSystem.files.filter { !$0.key.hasSuffix(".lock") }
    fileSystem.refused = [call]
    let error = #expect(throws: FileSinkError.self) {
      try self.compaction.compact(on: fileSystem)
    }
    #expect(error?.code == .io)
    #expect(error?.message.contains("cannot be compacted and was not changed") == true)
    #expect(fileSystem.files.filter { !$0.key.hasSuffix(".lock") } == before)
    #expect(fileSystem.violations == [])
  }
}
