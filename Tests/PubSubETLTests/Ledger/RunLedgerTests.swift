import DurableFiles
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@testable import Checkpoint
@testable import PubSubETL

@Suite("Ledger of runs") struct RunLedgerTests {
  /// Its directory is there as long as this.
  private let pipeline: SamplePipeline

  init() throws { self.pipeline = try SamplePipeline() }

  private func ledger(maxByteCount: Int? = nil) throws -> RunLedger {
    let paths = try self.pipeline.load().statePaths
    try SystemFileSystem().makeDirectories(paths.directory)
    var ledger = RunLedger(paths: paths)
    ledger.maxByteCount = maxByteCount ?? ledger.maxByteCount
    return ledger
  }

  private func write(_ bytes: [UInt8], to ledger: RunLedger) throws {
    let file = try OpenFile(
      ledger.paths.runs, [.write, .create, .truncate], on: SystemFileSystem())
    try file.write(bytes)
  }

  @Test("What the program writes it can read, whatever names and messages contain")
  func format() throws {
    var sample = LedgerSample(seed: 11)
    for _ in 0..<300 {
      let entry = sample.entry()
      let line = PrintableText(json: entry.json, .compact, hiding: SecretMask()).text
      #expect(line.utf8.count <= RunLedger.maxLineByteCount)
      #expect(line.split(separator: "\n").count == 1)
      #expect(LedgerEntry(json: try JSONValue(parsing: Array(line.utf8))) == entry)
    }
  }

  @Test("Entries are read in the order in which they were added")
  func order() throws {
    let ledger = try self.ledger()
    #expect(try ledger.read().entries.isEmpty)
    var sample = LedgerSample(seed: 12)
    let entries = (0..<20).map { _ in sample.entry() }
    for entry in entries { try ledger.append(entry, hiding: SecretMask()) }
    let content = try ledger.read()
    #expect(content.entries == entries && content.damagedCount == 0)
  }

  @Test("A line cut anywhere is skipped and counted, and the next one is read")
  func torn() throws {
    let ledger = try self.ledger()
    var sample = LedgerSample(seed: 13)
    let (first, second) = (LedgerEntry.began(sample.beginning()), LedgerEntry.run(sample.run()))
    let next = LedgerEntry.began(sample.beginning())
    let lines = [first, second].map {
      Array(PrintableText(json: $0.json, .compact, hiding: SecretMask()).text.utf8)
    }
    for length in stride(from: 0, to: lines[1].count, by: 1 + lines[1].count / 200) {
      try self.write(lines[0] + lines[1].prefix(length), to: ledger)
      try ledger.append(next, hiding: SecretMask())
      let content = try ledger.read()
      let isComplete = length == lines[1].count - 1
      #expect(content.entries == (isComplete ? [first, second, next] : [first, next]))
      #expect(content.damagedCount == (length == 0 || isComplete ? 0 : 1))
    }
  }

  @Test(
    "Hostile lines are skipped and counted",
    arguments: [
      #"{"kind":"run"}"#, "[]", "null", "\u{0}", String(repeating: "[", count: 100_000),
      #"{"kind":"began","run_id":"../../etc/passwd","version":"1","command":"run","pid":1,"began":"2026-02-17T04:03:15.000Z"}"#,
      #"{"kind":"began","run_id":"00000000000000a1","version":"1","command":"run","pid":-1,"began":"2026-02-17T04:03:15.000Z"}"#,
      #"{"kind":"began","run_id":"00000000000000a1","version":"1","command":"rm","pid":1,"began":"2026-02-17T04:03:15.000Z"}"#,
      #"{"kind":"began","run_id":"00000000000000a1","version":"1","command":"run","pid":1,"began":"yesterday"}"#,
      #"{"kind":"verify","version":"1","began":"2026-02-17T04:03:15.000Z","ended":"2026-02-17T04:03:15.000Z","verdict":"equal","compares":"records","tables":[{"sink":"a","object":"b","verdict":"drift","total":9223372036854775807,"drift":0}]}"#,
    ])
  func hostile(line: String) throws {
    let ledger = try self.ledger()
    var sample = LedgerSample(seed: 14)
    let entry = LedgerEntry.began(sample.beginning())
    try self.write(Array("\(line)\n".utf8), to: ledger)
    try ledger.append(entry, hiding: SecretMask())
    let content = try ledger.read()
    #expect(content.entries == [entry] && content.damagedCount == 1)
    let history = RunHistory(content, lock: RunLockState(isHeld: false))
    #expect(
      history.remark(ledger.paths)
        == "1 line of \(ledger.paths.runs) is damaged or from a newer version, and not shown")
  }

  @Test("A run with a member that is missing, negative or too large is skipped")
  func members() throws {
    var sample = LedgerSample(seed: 15)
    let record = LedgerEntry.run(sample.run())
    let members = try #require(record.json.members)
    for (name, _) in RunRecord.Counts.members {
      for value in [nil, -1, JSONValue.integer(RunRecord.Counts.maxCount + 1), "1"] as [JSONValue] {
        let changed = members.map { $0.name == name ? JSONMember(name, value) : $0 }
        #expect(LedgerEntry(json: JSONValue(.object(changed))) == nil, "\(name)")
      }
      let without = members.filter { $0.name != name }
      #expect(LedgerEntry(json: JSONValue(.object(without))) == nil, "\(name)")
    }
    #expect(LedgerEntry(json: record.json) == record)
  }

  @Test("The file stays within its limit and keeps the newest entries")
  func bounded() throws {
    let ledger = try self.ledger(maxByteCount: 5000)
    var sample = LedgerSample(seed: 16)
    var entries: [LedgerEntry] = []
    for number in 1...200 {
      var beginning = sample.beginning()
      beginning.version = "\(number)"
      entries.append(.began(beginning))
      try ledger.append(.began(beginning), hiding: SecretMask())
      let size = try SystemFileSystem().size(of: ledger.paths.runs) ?? 0
      #expect(size <= 5000)
      let content = try ledger.read()
      #expect(content.damagedCount == 0)
      #expect(content.entries == entries.suffix(content.entries.count))
      // More than a third of the limit is never lost at once.
      #expect(content.entries.count >= min(number, 10))
    }
    #expect(
      try SystemFileSystem().list(ledger.paths.directory)?.map(\.name) == ["opps.runs.ndjson"])
  }

  @Test("A file that something else has filled is shortened, and its end can be read")
  func oversized() throws {
    let ledger = try self.ledger(maxByteCount: 4000)
    var sample = LedgerSample(seed: 17)
    let entries = (0..<2).map { _ in LedgerEntry.began(sample.beginning()) }
    let line = PrintableText(json: entries[0].json, .compact, hiding: SecretMask()).text
    try self.write([UInt8](repeating: 0x20, count: 50_000) + Array("\n\(line)".utf8), to: ledger)
    #expect(try ledger.read().entries == [entries[0]])
    try ledger.append(entries[1], hiding: SecretMask())
    #expect(try ledger.read().entries == entries)
    #expect(try SystemFileSystem().size(of: ledger.paths.runs) ?? 0 <= 4000)
  }

  @Test("A secret that an error repeats is not in the ledger")
  func secrets() throws {
    let ledger = try self.ledger()
    let secrets = SecretMask()
    secrets.add("correct-horse")
    var sample = LedgerSample(seed: 18)
    var record = sample.run()
    record.message = "the server said: correct-horse is wrong"
    try ledger.append(.run(record), hiding: secrets)
    let text = String(decoding: try TextFile.read(ledger.paths.runs), as: UTF8.self)
    #expect(!text.contains("correct-horse") && text.contains(SecretMask.replacement))
  }

  @Test(
    "A run without a report is in progress while its process holds the lock, and was killed otherwise"
  )
  func states() {
    var sample = LedgerSample(seed: 19)
    let beginnings = (0..<3).map { _ in sample.beginning() }
    var record = sample.run()
    record.beginning = beginnings[0]
    let content = RunLedger.Content(
      entries: [
        .began(beginnings[0]), .run(record), .began(beginnings[1]), .began(beginnings[2]),
      ])
    func last(isHeld: Bool?, by processID: Int32) -> [RunHistory.Item] {
      RunHistory(content, lock: RunLockState(isHeld: isHeld, processID: processID)).items
    }
    let (killed, own) = (beginnings[1], beginnings[2])
    let dead: [RunHistory.Item] = [.run(record), .unreported(killed), .unreported(own)]
    let alive: [RunHistory.Item] = [.run(record), .unreported(killed), .running(own)]
    #expect(last(isHeld: true, by: own.processID) == alive)
    #expect(last(isHeld: nil, by: own.processID) == alive)
    #expect(last(isHeld: false, by: own.processID) == dead)
    #expect(last(isHeld: true, by: own.processID &- 1) == dead)
  }
}
