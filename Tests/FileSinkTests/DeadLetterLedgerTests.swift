import Bytes
import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Letters that were retried or dropped")
struct DeadLetterLedgerTests {
  private let fileSystem = ModelFileSystem()
  private let path = "/dead/_ledger-opps.ndjson"

  private func file() -> DeadLetterFile {
    DeadLetterFile(
      directory: "/dead", pipeline: "opps", org: "00D", fileSystem: self.fileSystem,
      clock: TestClock().sinkClock)
  }

  private func ledger() throws -> DeadLetterLedger {
    try DeadLetterLedger(directory: "/dead", pipeline: "opps", fileSystem: self.fileSystem)
  }

  private func letter(_ number: Int) throws -> StoredDeadLetter {
    let json: JSONValue = [
      "topic": "/data/OpportunityChangeEvent", "replay_id": .string("720\(number)"),
      "event_id": "e", "schema_id": "s", "epoch": 1, "ordinal": .integer(number),
      "time": "2026-02-17T04:03:15.000Z", "kind": "undecodable", "reason": "r", "payload": "AQID",
    ]
    return try #require(StoredDeadLetter(json: json))
  }

  @Test("A letter keeps its first entry, and a line that a crash truncated does not count")
  func entries() throws {
    let letters = try (1...3).map(self.letter)
    try self.fileSystem.makeDirectories("/dead")
    var ledger = try self.ledger()
    try ledger.note(.retried, [DeadLetterLedger.Key(letters[0])], now: 0)
    try OpenFile(self.path, [.write, .append], on: self.fileSystem)
      .write(Array("{\"time\":\"19".utf8))
    ledger = try self.ledger()
    try ledger.note(.dropped, letters.prefix(2).map(DeadLetterLedger.Key.init), now: 0)
    for ledger in [ledger, try self.ledger()] {
      #expect(ledger[letters[0]] == .retried && ledger[letters[1]] == .dropped)
      #expect(ledger[letters[2]] == nil)
      #expect(ledger.count(.retried) == 1 && ledger.count(.dropped) == 1)
    }
  }

  @Test("An event at the same position of another stream is a different letter")
  func otherStream() throws {
    var other = try self.letter(1)
    other.letter.replayID = ReplayID([1])
    try self.fileSystem.makeDirectories("/dead")
    var ledger = try self.ledger()
    try ledger.note(.dropped, [DeadLetterLedger.Key(try self.letter(1))], now: 0)
    #expect(ledger[other] == nil)
  }

  @Test(
    "A retry counts once the checkpoint is durable, even if the ledger was not written",
    arguments: [true, false])
  func commit(completes: Bool) throws {
    let letter = try self.letter(4)
    let dead = self.file()
    try dead.recover(from: nil)
    dead.noteRetried([letter])
    #expect(try self.ledger()[letter] == nil)
    let state = try dead.flush(finish: true)
    #expect(try self.ledger()[letter] == nil)
    if completes {
      #expect(try dead.committed())
      #expect(try self.ledger()[letter] == .retried)
      #expect(try dead.flush(finish: true)["retried"] == nil)
    }
    self.fileSystem.kill()
    // As the next run or retry does.
    try self.file().recover(from: state)
    let ledger = try self.ledger()
    #expect(ledger[letter] == .retried && ledger.count(.retried) == 1)
  }

  @Test("A retry of many commits reads the ledger once")
  func readsOnce() throws {
    let counted = FaultyFileSystem(self.fileSystem)
    let dead = DeadLetterFile(
      directory: "/dead", pipeline: "opps", org: "00D", fileSystem: counted,
      clock: TestClock().sinkClock)
    try dead.recover(from: nil)
    for number in 1...5 {
      dead.noteRetried([try self.letter(number)])
      _ = try dead.flush(finish: true)
      #expect(try dead.committed())
    }
    #expect(counted.calls.filter { $0.name == "read" && $0.path == self.path }.isEmpty)
    #expect(try self.ledger().count(.retried) == 5)
  }

  @Test("A retry whose checkpoint was never stored leaves the letter waiting")
  func noCheckpoint() throws {
    let letter = try self.letter(4)
    let dead = self.file()
    try dead.recover(from: nil)
    dead.noteRetried([letter])
    _ = try dead.flush(finish: true)
    self.fileSystem.kill()
    try self.file().recover(from: nil)
    #expect(try self.ledger()[letter] == nil)
  }

  @Test(
    "A line that is not a dead letter is refused",
    arguments: [
      "topic", "replay_id", "event_id", "schema_id", "epoch", "ordinal", "time", "reason",
    ])
  func incomplete(member: String) throws {
    let members = try #require(self.letter(1).json.members).filter { $0.name != member }
    #expect(StoredDeadLetter(json: JSONValue(.object(members))) == nil)
  }

  @Test(
    "A position that no run can reach is refused",
    arguments: [("epoch", 0), ("epoch", .max), ("ordinal", -1), ("ordinal", .max)]
      as [(String, Int64)])
  func place(member: String, number: Int64) throws {
    let members = try #require(self.letter(1).json.members).map {
      $0.name == member ? JSONMember(member, .integer(number)) : $0
    }
    #expect(StoredDeadLetter(json: JSONValue(.object(members))) == nil)
  }

  @Test(
    "Base64 is read strictly",
    arguments: [
      ("", []), ("AQID", [1, 2, 3]), ("AQI=", [1, 2]), ("AQ==", [1]), ("+/+/", [251, 255, 191]),
      ("AQI", nil), ("A===", nil), ("AQ=D", nil), ("AQI-", nil), ("====", nil),
    ] as [(String, [UInt8]?)])
  func base64(text: String, bytes: [UInt8]?) { #expect([UInt8](base64: text) == bytes) }

  @Test("In letters of earlier versions, the reason shows that a database refused the event")
  func earlierRefusal() throws {
    let members = try #require(self.letter(1).json.members).filter { $0.name != "kind" }
      .map { $0.name == "reason" ? JSONMember("reason", "sink 'wh': 22003") : $0 }
    let letter = try #require(StoredDeadLetter(json: JSONValue(.object(members))))
    #expect(letter.kind == "refused" && letter.letter.refusal?.sink == "wh")
  }
}
