import Checkpoint
import DurableFiles
import JSON
import Pipeline
import TestSupport

@testable import FileSink

/// Runs the commit cycle as the runner does, over events from a list, with checkpoint, files sink
/// and dead-letter file on one file system.
struct ScriptedRun {
  static let directory = "/data/out"
  static let deadDirectory = "/data/state/dead"
  static let stateDirectory = "/data/state"
  static let checkpointPath = "/data/state/opps.checkpoint.json"

  var events: [TestEvent]
  var eventsPerCommit = 2
  var rotation = FileSinkConfiguration.Rotation()
  var root = ""
  /// Each line goes through another thread.
  var writesAside = false
  /// Records of the org that are read beside the events, by the second commit.
  var reads: ScriptedReads?

  /// The number of events of each run; nil for one run. Files smaller than `keptByteCount` are
  /// continued by the next one, and the last one finishes all.
  var eventsPerRun: Int?
  var keptByteCount = 1 << 20

  /// Reads on from the checkpoint to the end of the list and finishes.
  func run(on fileSystem: any FileSystem, clock: TestClock = TestClock()) throws {
    guard let eventsPerRun else {
      return try self.run(to: self.events.count, on: fileSystem, clock: clock)
    }
    var script = self
    script.rotation.minByteCount = self.keptByteCount
    for end in stride(from: eventsPerRun, through: self.events.count, by: eventsPerRun) {
      try script.run(to: end, on: fileSystem, clock: clock)
    }
    try self.run(to: self.events.count, on: fileSystem, clock: clock)
  }

  private func run(to eventCount: Int, on fileSystem: any FileSystem, clock: TestClock) throws {
    let store = try FileCheckpointStore(
      directory: self.root + Self.stateDirectory, pipeline: "opps", fileSystem: fileSystem,
      clock: { clock.utcMilliseconds })
    var configuration = FileSinkConfiguration(
      directory: self.root + Self.directory, rotation: self.rotation, pipeline: "opps",
      org: "00D000000000001")
    configuration.writesAside = self.writesAside
    let sink = FileSink(
      configuration, fileSystem: fileSystem, clock: clock.sinkClock, pieceByteCount: 1)
    let dead = DeadLetterFile(
      directory: self.root + Self.deadDirectory, pipeline: "opps", org: "00D000000000001",
      fileSystem: fileSystem, clock: clock.sinkClock)
    let document = try store.load()
    var next = Int(document?.topics["topic"]?.nextOrdinal ?? 0)
    try sink.recover(from: document?.sinks["files"]?.json)
    try dead.recover(from: document?.deadLetters?.json)

    func commit(finish: Bool) throws -> Bool {
      var document = CheckpointDocument(pipeline: "opps", org: "00D000000000001")
      var position = TopicPosition(beginningEpoch: 1)
      position.nextOrdinal = Int64(next)
      position.resume = ReplayID([UInt8(truncatingIfNeeded: next)])
      document.topics["topic"] = position
      document.sinks["files"] = SinkState(try sink.flush(finish: finish))
      document.deadLetters = SinkState(try dead.flush(finish: finish))
      try store.save(document)
      let sinkChanged = try sink.committed()
      let deadChanged = try dead.committed()
      return sinkChanged || deadChanged
    }

    let batches = TestBatches()
    let readsAll = eventCount == self.events.count
    while next < eventCount || readsAll && self.reads?.isComplete(in: sink) == false {
      if next > 0 { try self.reads?.step(sink, batches, nextOrdinal: Int64(next)) }
      let end = min(next + self.eventsPerCommit, max(eventCount, next))
      let events = self.events[next..<end]
      for batch in batches.batches(events.filter { !$0.isUndecodable }[...]) {
        try sink.write(batch)
      }
      for event in events where event.isUndecodable { try dead.append(Self.letter(event)) }
      next = end
      _ = try commit(finish: false)
    }
    if try commit(finish: true) { _ = try commit(finish: true) }
  }

  static func letter(_ event: TestEvent) -> DeadLetter {
    DeadLetter(
      topic: event.topic, replayID: ReplayID(Array("r\(event.number)".utf8)),
      eventID: "e\(event.number)", schemaID: "schema", payload: [1, 2, 3],
      reason: "Amount: string of 90 bytes, 14 left", fieldPath: "Amount", byteOffset: 7, epoch: 1,
      ordinal: Int64(event.number))
  }

  /// What is wrong with the files of a finished run; empty when every event stands exactly once.
  func faults(in files: [String: [UInt8]]) throws -> [String] {
    var faults: [String] = []
    for (directory, isDead) in [(Self.directory, false), (Self.deadDirectory, true)] {
      let directory = self.root + directory
      let own = files.filter { $0.key.hasPrefix(directory + "/") }
      let finals = own.filter { ModelFileSystem.isFinal($0.key) }
      faults += own.keys.filter { $0.hasSuffix(".part") || $0.contains(".compact") }
        .map { "\($0) is left" }
      var manifest: [String: JSONValue] = [:]
      for line in String(decoding: own["\(directory)/_manifest.ndjson"] ?? [], as: UTF8.self)
        .split(separator: "\n")
      {
        let json = try JSONValue(parsing: String(line))
        let name = json["name"]?.string ?? ""
        if manifest[name] != nil { faults.append("\(name) is twice in the manifest") }
        manifest[name] = json
      }
      for line in Array(manifest.values) {
        for name in Manifest.replaced(by: line) where manifest.removeValue(forKey: name) == nil {
          faults.append("\(name) is replaced and was not in the manifest, or is replaced twice")
        }
      }
      if Set(manifest.keys.map { "\(directory)/\($0)" }) != Set(finals.keys) {
        faults.append("manifest \(manifest.keys.sorted()), files \(finals.keys.sorted())")
      }
      var found: [String: Int] = [:]
      for (path, content) in finals.sorted(by: { $0.key < $1.key }) {
        let json = manifest[String(path.dropFirst(directory.utf8.count + 1))]
        let ids = try Decompression.lines(of: content).map { line in
          let json = try JSONValue(parsing: line)
          return json[isDead ? "event_id" : "_event_id"]?.string ?? "?"
        }
        let numbers = ids.compactMap { Int($0.dropFirst()) }
        if numbers != numbers.sorted() { faults.append("\(path) is out of order: \(ids)") }
        for id in ids { found[id, default: 0] += 1 }
        if json?["sha256"]?.string != SHA256Hex.of(content)
          || json?["bytes"]?.integer != Int64(content.count)
          || json?["lines"]?.integer != Int64(ids.count)
          || json?["events"]?.integer
            != (json?["snapshot"] == nil ? Int64(Set(ids).count) : 0)
        {
          faults.append("\(path) is not what its manifest line says")
        }
      }
      let wanted = self.events.filter { $0.isUndecodable == isDead && $0.rowCount > 0 }
      for event in wanted {
        let count = found.removeValue(forKey: "e\(event.number)") ?? 0
        if count != event.rowCount { faults.append("e\(event.number) stands \(count) times") }
      }
      if !isDead, let reads {
        for (id, count) in reads.expected where found.removeValue(forKey: id) != count {
          faults.append("\(id) does not stand \(count) times")
        }
      }
      faults += found.keys.map { "\($0) was never sent" }
    }
    return faults
  }
}
