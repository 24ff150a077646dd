import Checkpoint
import DurableFiles
import JSON
import Pipeline
import TestSupport

@testable import FileSink

/// A run that makes many small files, and their compaction with the checkpoint of the run.
struct ScriptedCompaction {
  /// Two objects of one topic, two dates, an event of several records, a dead letter.
  var script = ScriptedRun(
    events: (0..<14).map { number in
      var event = TestEvent(number: number)
      if number % 3 == 2 { event.entity = "Account" }
      if number == 5 { event.rowCount = 3 }
      if number == 9 { event.isUndecodable = true }
      if number > 11 { event.commitTimestamp = 1_771_372_800_000 }
      return event
    },
    rotation: .init(maxEventCount: 1))
  var rotation = FileSinkConfiguration.Rotation()
  var before: String?

  @discardableResult
  func compact(on fileSystem: any FileSystem) throws -> [CompactedObject] {
    let store = try FileCheckpointStore(
      directory: self.script.root + ScriptedRun.stateDirectory, pipeline: "opps", isRun: false,
      fileSystem: fileSystem, clock: { 1_771_300_995_000 })
    let document = try store.load()
    let compaction = FileCompaction(
      FileSinkConfiguration(
        directory: self.script.root + ScriptedRun.directory, rotation: self.rotation,
        pipeline: "opps", org: "00D000000000001"),
      state: document?.sinks["files"]?.json,
      letters: .init(
        directory: self.script.root + ScriptedRun.deadDirectory,
        state: document?.deadLetters?.json),
      before: self.before, fileSystem: fileSystem)
    return try compaction.run { false }
  }

  /// Relative paths of the finished files that readers see.
  func visible(_ files: [String: [UInt8]]) -> [String: [UInt8]] {
    let root = self.script.root + ScriptedRun.directory + "/"
    var visible: [String: [UInt8]] = [:]
    for (path, content) in files where path.hasPrefix(root) && ModelFileSystem.isFinal(path) {
      visible[String(path.dropFirst(root.count))] = content
    }
    return visible
  }

  /// Reads what a program finds that lists the folders. Returns what is wrong with it.
  func faults(ofReader files: [String: [UInt8]]) throws -> [String] {
    var counts: [String: Int] = [:]
    for content in self.visible(files).values {
      for line in try Decompression.lines(of: content) {
        counts[try JSONValue(parsing: line)["_event_id"]?.string ?? "?", default: 0] += 1
      }
    }
    var faults: [String] = []
    for event in self.script.events where !event.isUndecodable {
      let count = counts.removeValue(forKey: "e\(event.number)") ?? 0
      if count != event.rowCount { faults.append("a reader finds e\(event.number) \(count) times") }
    }
    return faults + counts.keys.map { "a reader finds \($0)" }
  }
}
