import JSON

@testable import Pipeline

/// Ends a run at the n-th call of anything that could be the last before a crash.
final class CrashPoint {
  struct Crash: Error {}
  private var left: Int
  private(set) var passed = 0

  init(after calls: Int) { self.left = calls }

  func pass() throws {
    if self.left == 0 { throw Crash() }
    self.left -= 1
    self.passed += 1
  }
}

/// What survives a crash: the last checkpoint, and with it the lines it says are durable.
final class MemoryStore {
  var topics: [String: JSONValue] = [:]
  var sinks: [String: JSONValue] = [:]
  var deadLetters: JSONValue = nil

  func positions() throws -> [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    for (name, json) in self.topics {
      positions[name] = try TopicPosition(json: json, topic: name)
    }
    return positions
  }

  func lines(of sink: String) -> [String] { self.sinks[sink]?.array?.compactMap(\.string) ?? [] }
}

/// Lines in memory that count only once a checkpoint holds them.
final class MemorySink: Sink {
  let name: String
  private var lines: [String] = []
  private let crash: CrashPoint
  private(set) var commitSizes: [Int] = []
  private var flushed = 0

  init(name: String, crash: CrashPoint) {
    self.name = name
    self.crash = crash
  }

  func recover(from state: JSONValue?) throws {
    self.lines = state?.array?.compactMap(\.string) ?? []
    self.flushed = self.lines.count
  }

  func write(_ batch: RecordBatch) throws {
    try self.crash.pass()
    for event in batch.events {
      let replay = batch.bytes(event.replayID)
      let number = Int(replay[6]) << 8 | Int(replay[7])
      let row = event.firstRow
      var record = ""
      if batch.presence(ofRow: row)[MetadataSlot.recordID] == RecordBatch.Presence.value {
        let cell = batch.cells(ofRow: row)[MetadataSlot.recordID]
        record = String(decoding: batch.bytes(RecordBatch.Range(cell: cell)), as: UTF8.self)
      }
      let id = String(decoding: batch.bytes(event.eventID), as: UTF8.self)
      self.lines.append("\(number)/\(id)/\(record)")
    }
  }

  func flush(finish: Bool) throws -> JSONValue {
    try self.crash.pass()
    if self.lines.count > self.flushed { self.commitSizes.append(self.lines.count - self.flushed) }
    self.flushed = self.lines.count
    return .array(self.lines.map { .string($0) })
  }

  func committed() throws -> Bool {
    try self.crash.pass()
    return false
  }

  var isDue: Bool { false }
  var pendingByteCount: Int { 0 }
}

final class MemoryDeadLetters: DeadLetterStore {
  private(set) var letters: [String] = []
  var count: Int { self.letters.count }
  var isDue: Bool { false }
  var pendingByteCount: Int { 0 }
  func recover(from state: JSONValue?) throws {
    self.letters = state?.array?.compactMap(\.string) ?? []
  }
  func append(_ letter: DeadLetter) throws {
    self.letters.append(letter.eventID)
  }
  func flush(finish: Bool) throws -> JSONValue { .array(self.letters.map { .string($0) }) }
  func committed() throws -> Bool { false }
}
