import Checkpoint
import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Erasing records from files")
struct FileErasureTests {
  private static let victim = "003Dp0000004C9hIAE"
  private static let secret = "a text that nobody may keep"

  /// Two objects, two dates, dead letters; every third event is about the victim.
  private let script = ScriptedRun(
    events: (0..<14).map { number in
      var event = TestEvent(number: number)
      event.topic = "/data/ContactChangeEvent"
      event.entity = number % 5 == 4 ? "Account" : "Contact"
      event.recordID = number % 3 == 0 ? Self.victim : "003Dp0000004C9iIAE"
      event.text = number % 3 == 0 ? "\(Self.secret) \(number)" : "text \(number)"
      if number == 7 { event.isUndecodable = true }
      if number == 10 { event.isUndecodable = true }
      if number > 11 { event.commitTimestamp = 1_771_372_800_000 }
      return event
    },
    rotation: .init(maxEventCount: 3))

  private func fileSystem() throws -> ModelFileSystem {
    let fileSystem = ModelFileSystem()
    try self.script.run(on: fileSystem)
    fileSystem.kill()
    return fileSystem
  }

  private func erase(on fileSystem: any FileSystem) throws -> FileErasure.Result {
    let configuration = FileSinkConfiguration(
      directory: ScriptedRun.directory, pipeline: "opps", org: "00D000000000001")
    let records = [try RecordID(Self.victim)]
    let result = try FileErasure(
      records, of: "Contact", in: configuration, fileSystem: fileSystem
    ).run()
    let letter = DeadLetterLedger.Key(
      id: .init(topic: "/data/ContactChangeEvent", epoch: 1, ordinal: 7),
      replayID: Array("r7".utf8).map { String($0, radix: 16) }.joined())
    let letters = try FileErasure(
      [letter: [JSONMember("payload", nil)]], inDeadLettersOf: "opps",
      directory: ScriptedRun.deadDirectory, state: nil,
      fileSystem: fileSystem
    ).run()
    #expect(letters.faults == [])
    return result
  }

  /// Every line of every file, also of hidden ones and those in progress.
  private func lines(_ fileSystem: ModelFileSystem) throws -> [String] {
    try fileSystem.files.filter {
      $0.key.hasSuffix(".zst") && !$0.key.hasSuffix("/.none.ndjson.zst")
    }.flatMap { _, content in
      try Decompression.lines(of: content).map { String(decoding: Array($0.utf8), as: UTF8.self) }
    }.sorted()
  }

  /// What is wrong after an erasure.
  private func faults(_ fileSystem: ModelFileSystem, before: [String]) throws -> [String] {
    var faults = try self.script.faults(in: fileSystem.files)
    let lines = try self.lines(fileSystem)
    func others(_ lines: [String]) -> [String] {
      lines.filter { !$0.contains(Self.victim) && !$0.contains("\"payload\"") }
    }
    if others(lines) != others(before) { faults.append("other lines differ") }
    // Event 9 is of another object, whatever its ID.
    faults += lines.filter { $0.contains(Self.secret) && !self.isOfAccount($0) }
      .map { "left: \($0)" }
    let payloads = lines.filter { $0.contains("\"payload\"") }
    if payloads.count(where: { $0.contains("\"payload\":null") }) != 1 { faults.append("payloads") }
    return faults + fileSystem.violations
  }

  private func isOfAccount(_ line: String) -> Bool {
    self.script.events.contains {
      $0.entity == "Account" && line.contains("\"_event_id\":\"e\($0.number)\"")
    }
  }

  @Test("Lines of the records lose their values and nothing else; a second time does nothing")
  func erases() throws {
    let fileSystem = try self.fileSystem()
    let before = try self.lines(fileSystem)
    let manifest = fileSystem.files[ScriptedRun.directory + "/_manifest.ndjson"]?.count ?? 0
    let result = try self.erase(on: fileSystem)
    #expect(result.faults == [] && result.lineCount == 4)
    #expect(try self.faults(fileSystem, before: before) == [])
    #expect(fileSystem.files[ScriptedRun.directory + "/_manifest.ndjson"]?.count ?? 0 > manifest)
    fileSystem.kill()
    let files = fileSystem.files
    #expect(try self.erase(on: fileSystem) == FileErasure.Result())
    #expect(
      fileSystem.files.filter { !$0.key.hasSuffix(".lock") }
        == files.filter { !$0.key.hasSuffix(".lock") })
    // A run goes on with the files as they are.
    fileSystem.kill()
    try self.script.run(on: fileSystem)
    #expect(try self.faults(fileSystem, before: before) == [])
  }

  @Test("After a kill or power cut at any call, repeating it or a run completes what was begun")
  func crashes() throws {
    let original = try self.fileSystem()
    let before = try self.lines(original)
    let counting = original.copy()
    _ = try self.erase(on: counting)
    let callCount = counting.callCount
    #expect(callCount > 60)
    for call in 1...callCount where ExplorationSize.isFull || call % 2 == 0 {
      let fileSystem = original.copy()
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = call % 4 < 2
      _ = try? self.erase(on: fileSystem)
      if call % 3 == 0 {
        fileSystem.kill()
      } else {
        fileSystem.powerCut(.random(SplitMix(seed: UInt64(call))))
      }
      if call % 5 < 2 {
        try self.script.run(on: fileSystem)
        fileSystem.kill()
        #expect(try self.script.faults(in: fileSystem.files) == [], "a run after call \(call)")
      }
      _ = try self.erase(on: fileSystem)
      #expect(try self.faults(fileSystem, before: before) == [], "call \(call)")
    }
  }

  @Test("A file that was changed is named, stays, and does not keep the others from being erased")
  func damage() throws {
    let fileSystem = try self.fileSystem()
    let name = try #require(
      fileSystem.files.keys.filter { $0.contains("/Contact/") && $0.hasSuffix(".zst") }.sorted()
        .first)
    let file = try OpenFile(name, [.write], on: fileSystem)
    try file.truncate(to: 20)
    _ = consume file
    fileSystem.kill()
    let result = try self.erase(on: fileSystem)
    #expect(result.faults.count == 1 && result.faults.first?.contains(name) == true)
    #expect(result.lineCount > 0)
    #expect(fileSystem.files[name]?.count == 20)
  }

  @Test("A line that has values and no ID is a fault, whatever else is in it")
  func noID() throws {
    let editor = RecordEditor([try RecordID(Self.victim)])
    func edited(_ line: String) throws(SegmentLines.Fault) -> String? {
      let bytes = Array(line.utf8)
      do {
        return try bytes.withUnsafeBufferPointer { bytes in
          try editor.edited(bytes, number: 3).map { String(decoding: $0, as: UTF8.self) }
        }
      } catch let fault as SegmentLines.Fault { throw fault } catch { return nil }
    }
    #expect(try edited("{\"_event_id\":\"e\",\"_kind\":\"overflow\"}") == nil)
    #expect(
      try edited("{\"_record_id\":\"003Dp0000004C9iIAE\",\"Boss\":\"\(Self.victim)\"}") == nil)
    #expect(
      try edited(
        "{\"_record_id\":\"\(Self.victim)\",\"_changed_fields\":[\"A\"],\"A\":1,\"_nonfinite\":{}}")
        == "{\"_record_id\":\"\(Self.victim)\",\"_changed_fields\":[\"A\"]}")
    #expect(try edited("{\"_record_id\":\"\(Self.victim)\",\"_kind\":\"change\"}") == nil)
    for line in [
      "{\"Id\":\"\(Self.victim)\"}", "\"\(Self.victim)\"", "{\(Self.victim)",
      "{\"_event_id\":\"e\",\"text\":\"x\"}",
    ] {
      let fault = #expect(throws: SegmentLines.Fault.self) { try edited(line) }
      #expect(fault?.line == 3)
    }
  }

  @Test("A file that is rewritten again and again gets a new name each time, with the same place")
  func names() throws {
    for kind in [SegmentKind.records, .deadLetters] {
      for pass in [nil, SegmentKey.Pass(number: 12, request: 1)] {
        var key = SegmentKey(
          topic: "/data/ContactChangeEvent", entity: "Contact", day: 0, isExportDate: true)
        key.pass = pass
        let first = SegmentName(
          kind: kind, pipeline: "a-b", key: key, epoch: 11, ordinal: 42, row: 1_000_000)
        let matcher = SegmentName.Matcher(kind: kind, pipeline: "a-b")
        var names = [first.path]
        for _ in 0..<1200 {
          let last = names[names.count - 1]
          let base = String(last.split(separator: "/").last ?? "")
          let parsed = try #require(Array(base.utf8).withUnsafeBufferPointer { matcher.parse($0) })
          #expect(parsed.epoch == 11 && parsed.firstOrdinal == 42)
          #expect(parsed.pass == pass.map { Int64($0.number) })
          names.append(try #require(SegmentName.rewrittenPath(of: last, parsed, kind: kind)))
        }
        #expect(Set(names).count == names.count)
      }
    }
  }
}
