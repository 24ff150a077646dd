import DurableFiles
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// The same scenario on a real file system, with real descriptors, renameat2 and flock.
@Suite("Real files")
struct RealFilesTests {
  private func script(_ root: String) -> ScriptedRun {
    var script = CrashTests.script
    script.root = root
    return script
  }

  private func content(below root: String) throws -> [String: [UInt8]] {
    Dictionary(
      uniqueKeysWithValues: try Decompression.files(below: root).map {
        ($0, try Decompression.read($0))
      })
  }

  @Test("Every finished file passes zstd -t, has its mode and is in the manifest")
  func finished() throws {
    let root = try TemporaryDirectory()
    let script = self.script(root.path)
    try script.run(on: SystemFileSystem())
    let files = try self.content(below: root.path)
    #expect(try script.faults(in: files) == [])
    let finals = files.keys.filter(ModelFileSystem.isFinal).sorted()
    #expect(try Decompression.zstdTest(finals) == 0)
    #expect(
      finals.map { $0.dropFirst(root.path.utf8.count) } == [
        "/data/out/Account/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000002.ndjson.zst",
        "/data/out/Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst",
        "/data/out/Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000006.ndjson.zst",
        "/data/out/Opportunity/commit_date=2026-02-18/opps-OpportunityChangeEvent-e1-000000000007.ndjson.zst",
        "/data/out/Order__e/export_date=2026-02-17/opps-Order__e-e1-000000000004.ndjson.zst",
        "/data/state/dead/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000003.dead.ndjson.zst",
      ])
    var status = stat()
    #expect(stat(finals[0], &status) == 0)
    let mask = umask(0)
    umask(mask)
    #expect(status.st_mode & 0o777 == 0o640 & ~mask)
    #expect(stat(root.path + "/data/out/Account", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o750 & ~mask)
  }

  @Test("A manifest line describes its file completely")
  func manifestLine() throws {
    let root = try TemporaryDirectory()
    try self.script(root.path).run(on: SystemFileSystem())
    let text = try Decompression.read(root.path + "/data/out/_manifest.ndjson")
    let line = try #require(
      String(decoding: text, as: UTF8.self).split(separator: "\n").first {
        $0.contains("000000000007")
      })
    let file = try Decompression.read(
      root.path
        + "/data/out/Opportunity/commit_date=2026-02-18/opps-OpportunityChangeEvent-e1-000000000007.ndjson.zst"
    )
    let expected: JSONValue = [
      "name":
        "Opportunity/commit_date=2026-02-18/opps-OpportunityChangeEvent-e1-000000000007.ndjson.zst",
      "pipeline": "opps", "org": "00D000000000001", "topic": "/data/OpportunityChangeEvent",
      "entity": "Opportunity", "events": 2, "lines": 2, "bytes": .integer(file.count),
      "uncompressed_bytes": .integer(try Decompression.content(of: file).count),
      "first_replay_id": "7237", "last_replay_id": "7238", "epoch": 1, "first_ordinal": 7,
      "last_ordinal": 8, "schema_ids": ["schema-Opportunity"],
      "first_commit_timestamp": "2026-02-18T00:00:00.000Z",
      "last_commit_timestamp": "2026-02-18T00:00:00.000Z", "sha256": .string(SHA256Hex.of(file)),
      "replaces": [],
      "resume": ["ordinal": 8, "after": "7237", "after_ordinal": 7, "group": [["e8", ""]]],
    ]
    #expect(try JSONValue(parsing: String(line)) == expected)
  }

  @Test("Short writes change nothing", arguments: [1, 7])
  func shortWrites(byteCount: Int) throws {
    let root = try TemporaryDirectory()
    let script = self.script(root.path)
    let fileSystem = FaultyFileSystem()
    fileSystem.maxWriteByteCount = byteCount
    try script.run(on: fileSystem)
    #expect(try script.faults(in: try self.content(below: root.path)) == [])
  }

  @Test("The next run completes after a kill at a call, and every finished file passes zstd -t")
  func killed() throws {
    let counting = FaultyFileSystem()
    let first = try TemporaryDirectory()
    try self.script(first.path).run(on: counting)
    var finals: [String] = []
    var roots: [TemporaryDirectory] = []
    // A kill at a call that changes nothing leaves what a kill at the next one leaves.
    let reading = ["stat", "fstat", "read", "opendir"]
    for call in 1...counting.calls.count where !reading.contains(counting.calls[call - 1].name) {
      let root = try TemporaryDirectory()
      roots.append(root)
      let script = self.script(root.path)
      let fileSystem = FaultyFileSystem()
      // Odd ones tear writes as well.
      fileSystem.maxWriteByteCount = call % 2 == 0 ? Int.max : 50
      fileSystem.fault = { number, _ in number >= call ? EIO : nil }
      #expect(throws: (any Error).self) { try script.run(on: fileSystem) }
      let visible = try self.content(below: root.path).filter { ModelFileSystem.isFinal($0.key) }
      try script.run(on: SystemFileSystem())
      let files = try self.content(below: root.path)
      #expect(try script.faults(in: files) == [], "killed at call \(call)")
      for (path, content) in visible { #expect(files[path] == content, "\(path) changed") }
      finals += files.keys.filter(ModelFileSystem.isFinal)
    }
    #expect(try Decompression.zstdTest(finals) == 0)
  }

  @Test(
    "A failing call ends the run, names the file and the remedy, and is not repeated",
    arguments: [
      (ENOSPC, "write", "free space"), (EDQUOT, "write", "quota"), (EIO, "fdatasync", "disk"),
      (EIO, "fsync", "disk"), (EMFILE, "open", "ulimit"), (EROFS, "renameat2", "read-only"),
    ])
  func failingDisk(code: Int32, name: String, remedy: String) throws {
    let root = try TemporaryDirectory()
    let script = self.script(root.path)
    let counting = FaultyFileSystem()
    try script.run(on: counting)
    let places = counting.calls.indices.filter {
      counting.calls[$0].name == name && counting.calls[$0].path.contains("/data/out/")
    }
    #expect(!places.isEmpty)
    for place in places {
      let root = try TemporaryDirectory()
      let script = self.script(root.path)
      let fileSystem = FaultyFileSystem()
      fileSystem.fault = { number, _ in number == place + 1 ? code : nil }
      do {
        try script.run(on: fileSystem)
        Issue.record("\(name) number \(place) failed and the run did not")
      } catch let error as FileSinkError {
        #expect(error.code == .io)
        #expect(error.message.contains("/data/out") && error.message.contains(remedy))
      }
      // What failed was the last call of the run.
      #expect(fileSystem.calls.count == place + 1)
      try script.run(on: SystemFileSystem())
      #expect(try script.faults(in: try self.content(below: root.path)) == [])
    }
  }
}
