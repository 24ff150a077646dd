import Bytes
import DurableFiles
import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// `_freshness`: how complete the files of each object are.
@Suite("Freshness of files") struct FreshnessTests {
  private static let deals = "/data/OpportunityChangeEvent"
  private let directory: TemporaryDirectory
  private let clock = TestClock()
  private let batches = TestBatches()

  init() throws { self.directory = try TemporaryDirectory() }

  /// - Parameter state: what the run before stored.
  @discardableResult
  private func run<Result>(
    from state: JSONValue? = nil, pipeline: String = "opps", _ body: (FileSink) throws -> Result
  ) throws -> Result {
    let sink = FileSink(
      FileSinkConfiguration(
        name: "files", directory: self.directory.path, pipeline: pipeline, org: "00D"),
      fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
    try sink.recover(from: state)
    return try body(sink)
  }

  private func position(through time: Int64?, epoch: Int = 1, holes: Int = 0) -> TopicPosition {
    var position = TopicPosition(beginningEpoch: epoch, holes: holes)
    position.completeThrough = time
    return position
  }

  /// Commits and describes, as the store does.
  @discardableResult
  private func commit(
    _ sink: FileSink, _ position: TopicPosition, isLast: Bool = false,
    lacking letters: () -> WaitingLetters = { WaitingLetters() }
  ) throws -> JSONValue {
    let state = try sink.flush(finish: isLast)
    _ = try sink.committed()
    try sink.describe([Self.deals: position], lacking: letters, isLast: isLast)
    return isLast ? try sink.flush(finish: true) : state
  }

  /// The rows of the view, one for each object and pipeline: the columns named, as text.
  private func rows(_ columns: String...) throws -> [[String?]] {
    let (names, rows) = try ViewFiles.query("_freshness", of: self.directory.path)
    return rows.map { row in
      columns.map { column in names.firstIndex(of: column).flatMap { row[$0] } }
    }
  }

  private func write(_ event: TestEvent, to sink: FileSink) throws {
    for batch in self.batches.batches([event]) { try sink.write(batch) }
  }

  @Test("Files are complete up to the oldest change that is in no finished file")
  func openFiles() throws {
    let time: Int64 = 1_771_300_995_000
    let state = try self.run { sink in
      try self.write(TestEvent(number: 0, commitTimestamp: time), to: sink)
      try self.write(TestEvent(number: 1, commitTimestamp: time - 5000), to: sink)
      try self.commit(sink, self.position(through: time + 60_000))
      #expect(
        try self.rows("entity", "pipeline", "complete_through", "holes") == [
          ["Opportunity", "opps", "2026-02-17 04:03:10+00", "0"]
        ])
      let state = try self.commit(sink, self.position(through: time + 90_000), isLast: true)
      #expect(
        try self.rows("complete_through", "state") == [["2026-02-17 04:04:45+00", "late"]])
      return state
    }
    // A run without events.
    self.clock.utcMilliseconds += 3_600_000
    try self.run(from: state) { sink in
      try self.commit(sink, self.position(through: time + 3_600_000), isLast: true)
    }
    #expect(
      try self.rows("complete_through", "last_run") == [
        ["2026-02-17 05:03:15+00", "2026-02-17 05:03:15+00"]
      ])
  }

  @Test("Changes that went elsewhere make an object stale until its records are read again")
  func leftOut() throws {
    func expect(_ row: String?...) throws {
      #expect(try self.rows("state", "missing_ranges") == [row])
    }
    // The view compares with the clock of the machine.
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let deals = self.batches.batches([TestEvent(number: 1, commitTimestamp: now)])
    // An object of which the sink holds nothing lacks nothing.
    var state = try self.run { sink in
      for batch in deals { sink.noteLeftOut(batch) }
      return try self.commit(sink, self.position(through: now), isLast: true)
    }
    state = try self.run(from: state) { sink in
      try self.write(TestEvent(number: 0, commitTimestamp: now), to: sink)
      return try self.commit(sink, self.position(through: now), isLast: true)
    }
    try expect("fresh", "0")
    for _ in 1...2 {
      state = try self.run(from: state) { sink in
        for batch in deals { sink.noteLeftOut(batch) }
        return try self.commit(sink, self.position(through: now), isLast: true)
      }
      try expect("stale", "1")
    }
    try self.run(from: state) { sink in
      let reads = ScriptedReads(recordCount: 3)
      for _ in 1...4 { try reads.step(sink, self.batches, nextOrdinal: 2) }
      try self.commit(sink, self.position(through: now), isLast: true)
    }
    #expect(try self.rows("missing_ranges") == [["0"]])
  }

  @Test("An object is being copied until every record is in a finished file")
  func copying() throws {
    let reads = ScriptedReads(recordCount: 3)
    let time: Int64 = 1_771_300_995_000
    let at = "2026-02-17 04:03:15+00"
    func expect(_ row: String?...) throws {
      #expect(
        try self.rows(
          "state", "complete_through", "snapshot_state", "snapshot_rows", "snapshot_at") == [row])
    }
    let stored = try self.run { sink in
      try reads.step(sink, self.batches, nextOrdinal: 0)
      try self.commit(sink, self.position(through: time))
      try expect("copying", nil, "waiting", "0", nil)
      try reads.step(sink, self.batches, nextOrdinal: 0)
      let state = try self.commit(sink, self.position(through: time))
      try expect("copying", nil, "reading", "2", nil)
      return state
    }
    // The run was killed, and the next one resumes the copy.
    let complete = try self.run(from: stored) { sink in
      _ = try sink.flush(finish: false)
      while !reads.isComplete(in: sink) { try reads.step(sink, self.batches, nextOrdinal: 0) }
      // What follows a flush is not committed with it.
      _ = try sink.committed()
      try sink.describe(
        [Self.deals: self.position(through: time)], lacking: { WaitingLetters() }, isLast: false)
      try expect("copying", nil, "reading", "2", nil)
      let state = try self.commit(sink, self.position(through: time), isLast: true)
      try expect("late", at, "complete", "3", at)
      return state
    }
    // While another copy is made, the earlier one counts.
    self.clock.utcMilliseconds += 60_000
    let begun = try self.run(from: complete) { sink in
      try sink.write(self.emptyRead(), pass: ReadPass(entity: "Opportunity", number: 2))
      let state = try self.commit(sink, self.position(through: time + 1000))
      try expect("copying", "2026-02-17 04:03:16+00", "waiting", "0", at)
      return state
    }
    try self.run(from: begun) { sink in
      try self.commit(sink, self.position(through: time + 2000))
    }
    try expect("copying", "2026-02-17 04:03:17+00", "waiting", "0", at)
  }

  private func emptyRead() -> RecordBatch {
    let batch = RecordBatch(layout: self.batches.layout(topic: Self.deals, entity: "Opportunity"))
    batch.readAt = .now
    batch.epoch = 2
    return batch
  }

  @Test("Events that were lost make an object stale until its records are read again")
  func holes() throws {
    let lost = self.position(through: 1_771_300_995_000, epoch: 2, holes: 1)
    let state = try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      return try self.commit(sink, lost, isLast: true)
    }
    #expect(try self.rows("state", "holes", "missing_ranges") == [["stale", "1", "1"]])
    try self.run(from: state) { sink in
      var pass = ReadPass(entity: "Opportunity", number: 1)
      try sink.write(self.emptyRead(), pass: pass)
      pass.state = .complete
      pass.job = "1"
      try sink.write(self.emptyRead(), pass: pass)
      try self.commit(sink, lost, isLast: true)
    }
    #expect(try self.rows("state", "holes", "missing_ranges") == [["late", "1", "0"]])
  }

  private func deadLetters(from state: JSONValue?) throws -> DeadLetterFile {
    let letters = DeadLetterFile(
      directory: "\(self.directory.path)/dead", pipeline: "opps", org: "00D",
      fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
    try letters.recover(from: state)
    return letters
  }

  @Test("Dead letters make an object stale until they are retried, dropped or made up for")
  func deadLetters() throws {
    var (state, letterState): (JSONValue?, JSONValue?)
    func run(
      lacking expected: Int, state name: String, letters: [DeadLetter] = [],
      _ body: (FileSink, DeadLetterFile) throws -> Void = { _, _ in }
    ) throws {
      self.clock.utcMilliseconds += 60_000
      let dead = try self.deadLetters(from: letterState)
      state = try self.run(from: state) { sink in
        try body(sink, dead)
        for letter in letters { try dead.append(letter) }
        _ = try dead.flush(finish: true)
        _ = try dead.committed()
        letterState = try dead.flush(finish: true)
        return try self.commit(
          sink, self.position(through: 1_771_300_995_000), isLast: true, lacking: dead.waiting)
      }
      #expect(try self.rows("dead_letters", "state") == [["\(expected)", name]])
    }
    func letter(_ number: Int, refusedBy sink: String? = nil) -> DeadLetter {
      var letter = ScriptedRun.letter(TestEvent(number: number))
      letter.refusal = sink.map { DeadLetter.Refusal(sink: $0) }
      return letter
    }
    try run(lacking: 0, state: "late") { sink, _ in try self.write(TestEvent(number: 0), to: sink) }
    // The files have the event of a letter that only another sink refused.
    try run(
      lacking: 2, state: "stale",
      letters: [letter(1), letter(2, refusedBy: "files"), letter(3, refusedBy: "warehouse")])
    try run(lacking: 2, state: "stale")
    var ledger = try DeadLetterLedger(directory: "\(self.directory.path)/dead", pipeline: "opps")
    try ledger.note(
      .dropped, [DeadLetterLedger.Key(id: .init("OpportunityChangeEvent-e1-2"), replayID: "7232")])
    try run(lacking: 1, state: "stale")
    let archive = DeadLetterArchive(
      directory: "\(self.directory.path)/dead", pipeline: "opps", org: nil)
    var stored: [StoredDeadLetter] = []
    try archive.visit(openFiles: nil) { stored.append($0) }
    try run(lacking: 0, state: "late") { _, dead in
      #expect(dead.waiting().count == 2)
      dead.noteRetried([try #require(stored.first)])
    }
    try run(lacking: 0, state: "late")
    // A snapshot that begins after the letter has the record.
    try run(lacking: 1, state: "stale", letters: [letter(4)])
    var pass = ReadPass(entity: "Opportunity", number: 1)
    try run(lacking: 1, state: "copying") { sink, _ in
      try sink.write(self.emptyRead(), pass: pass)
    }
    pass.state = .complete
    pass.job = "1"
    try run(lacking: 0, state: "late") { sink, _ in try sink.write(self.emptyRead(), pass: pass) }
    try run(lacking: 1, state: "stale", letters: [letter(5)])
  }

  @Test("An object is stale while dead letters cannot be read, unless all are handled")
  func unreadableLetters() throws {
    func store() throws -> JSONValue {
      let dead = try self.deadLetters(from: nil)
      try dead.append(ScriptedRun.letter(TestEvent(number: 1)))
      _ = try dead.flush(finish: true)
      _ = try dead.committed()
      return try dead.flush(finish: true)
    }
    _ = try store()
    var path = ""
    try ExportedFile.visit(
      .deadLetters, in: "\(self.directory.path)/dead", pipeline: "opps"
    ) { path = "\(self.directory.path)/dead/\($0.name)" }
    try "changed".write(toFile: path, atomically: true, encoding: .utf8)
    #expect(
      try self.deadLetters(from: nil).waiting().count(
        of: [Self.deals], lackedBy: "files", since: .max) == 1)
    var ledger = try DeadLetterLedger(directory: "\(self.directory.path)/dead", pipeline: "opps")
    try ledger.note(
      .dropped, [DeadLetterLedger.Key(id: .init("OpportunityChangeEvent-e1-1"), replayID: "7231")])
    #expect(try self.deadLetters(from: nil).waiting() == WaitingLetters())
  }

  @Test(
    "Counts of gap events that no run stores are a damaged checkpoint",
    arguments: ["covered", "open"], [Int64.max, Int64.min, -1, 1 << 49])
  func damagedGapEvents(key: String, count: Int64) {
    let counts = JSONValue(.object([JSONMember(key, .integer(count))]))
    #expect(throws: FileSinkError.self) {
      try GapEvents(in: ["gap_events": ["Opportunity": counts]])
    }
  }

  @Test("Gap events are counted until a snapshot that begins later is complete")
  func gapEvents() throws {
    func events(_ state: JSONValue) throws -> [String: Int] { try GapEvents(in: state).byObject }
    let layout = self.batches.layout(topic: Self.deals, entity: "Opportunity")
    var ordinal: Int64 = 1
    func gap(_ type: String, in sink: FileSink, kind: EventKind = .gap) throws {
      let batch = RecordBatch(layout: layout)
      let range = Array(type.utf8).withUnsafeBufferPointer { batch.append($0) }
      let row = batch.addRow()
      batch.row(row).set(MetadataSlot.changeType, to: range)
      let none = RecordBatch.Range(offset: 0, count: 0)
      batch.events.append(
        RecordBatch.Event(
          firstRow: row, rowCount: 1, replayID: none, eventID: none,
          commitTimestamp: 1_771_300_995_000, kind: kind,
          ordinal: ordinal))
      ordinal += 1
      try sink.write(batch)
    }
    var pass = ReadPass(entity: "Opportunity", number: 1)
    let state = try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      #expect(try events(sink.flush(finish: false)) == [:])
      for type in ["GAP_UPDATE", "GAP_DELETE", "GAP_CREATE"] { try gap(type, in: sink) }
      try gap("GAP_OVERFLOW", in: sink, kind: .overflow)
      #expect(try events(sink.flush(finish: false)) == ["Opportunity": 3])
      try sink.write(self.emptyRead(), pass: pass)
      try gap("GAP_UPDATE", in: sink)
      return try self.commit(sink, self.position(through: 1), isLast: true)
    }
    #expect(try events(state) == ["Opportunity": 4])
    try self.run(from: state) { sink in
      pass.state = .complete
      pass.job = "1"
      try sink.write(self.emptyRead(), pass: pass)
      #expect(try events(sink.flush(finish: true)) == ["Opportunity": 1])
      pass = ReadPass(entity: "Opportunity", number: 2)
      try sink.write(self.emptyRead(), pass: pass)
      pass.state = .complete
      pass.job = "2"
      try sink.write(self.emptyRead(), pass: pass)
      #expect(try events(sink.flush(finish: true)) == [:])
    }
  }

  @Test("Gap events of a record that is deleted or sent with all values no longer count")
  func settledGapEvents() throws {
    let layout = self.batches.layout(topic: Self.deals, entity: "Opportunity")
    var ordinal: Int64 = 0
    func write(_ type: String, _ records: String..., to sink: FileSink) throws {
      let batch = RecordBatch(layout: layout)
      func range(_ text: String) -> RecordBatch.Range {
        Array(text.utf8).withUnsafeBufferPointer { batch.append($0) }
      }
      let rows = records.map { record in
        let row = batch.addRow()
        batch.row(row).set(MetadataSlot.changeType, to: range(type))
        batch.row(row).set(MetadataSlot.recordID, to: range(record))
        return row
      }
      let none = RecordBatch.Range(offset: 0, count: 0)
      batch.events.append(
        RecordBatch.Event(
          firstRow: rows[0], rowCount: rows.count, replayID: none, eventID: none,
          commitTimestamp: 1_771_300_995_000, kind: type.hasPrefix("GAP") ? .gap : .change,
          ordinal: ordinal))
      ordinal += 1
      try sink.write(batch)
    }
    func expect(_ count: Int?, in sink: FileSink) throws {
      let state = try JSONValue(parsing: try sink.flush(finish: false).text())
      #expect(try GapEvents(in: state).byObject == count.map { ["Opportunity": $0] } ?? [:])
    }
    let state = try self.run { sink in
      try write("DELETE", "r1", to: sink)
      try write("GAP_UPDATE", "r1", "r2", "r3", to: sink)
      try write("GAP_UPDATE", "r1", to: sink)
      try write("UPDATE", "r1", to: sink)
      try expect(3, in: sink)
      try write("DELETE", "r1", to: sink)
      try expect(2, in: sink)
      return try self.commit(sink, self.position(through: 1), isLast: true)
    }
    try self.run(from: state) { sink in
      try expect(2, in: sink)
      try write("GAP_DELETE", "r2", to: sink)
      try expect(1, in: sink)
      try write("UNDELETE", "r3", to: sink)
      try expect(nil, in: sink)
      for number in 0..<600 { try write("GAP_UPDATE", "x\(number)", to: sink) }
      try expect(600, in: sink)
    }
  }

  @Test("Each pipeline has its own row, and keeps those of others")
  func pipelines() throws {
    for (number, pipeline) in ["b", "a-\"q\""].enumerated() {
      try self.run(pipeline: pipeline) { sink in
        try self.write(TestEvent(number: 0), to: sink)
        try self.commit(
          sink, self.position(through: 1_771_300_995_000 + Int64(number) * 1000), isLast: true)
      }
    }
    #expect(
      try self.rows("entity", "pipeline", "complete_through") == [
        ["Opportunity", "a-\"q\"", "2026-02-17 04:03:16+00"],
        ["Opportunity", "b", "2026-02-17 04:03:15+00"],
      ])
  }

  @Test(
    "A file that is missing, damaged or of an earlier version is made again",
    arguments: [nil, "", "{", "[1]\n{\"pipeline\":\"opps\"}\n"])
  func rebuilt(content: String?) throws {
    let state = try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      return try self.commit(sink, self.position(through: 1_771_300_995_000), isLast: true)
    }
    let path = "\(self.directory.path)/_freshness.ndjson"
    if let content {
      try content.write(toFile: path, atomically: true, encoding: .utf8)
    } else {
      try FileManager.default.removeItem(atPath: path)
    }
    try self.run(from: state) { sink in
      #expect(FileManager.default.fileExists(atPath: path))
      try self.commit(sink, self.position(through: 1_771_300_996_000), isLast: true)
    }
    #expect(
      try self.rows("entity", "topics", "complete_through", "last_run") == [
        ["Opportunity", "[\(Self.deals)]", "2026-02-17 04:03:16+00", "2026-02-17 04:03:15+00"]
      ])
  }

  @Test("A line that lacks a fact, or has one that cannot be true, is not fresh")
  func hostileLines() throws {
    try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      try self.commit(sink, self.position(through: 1_771_300_995_000), isLast: true)
    }
    func time(_ hours: Int) -> String {
      "\"complete_through\":\"\(UTCTime.timestamp(milliseconds: UTCTime.now() + Int64(hours) * 3_600_000))\""
    }
    let good = "\"missing_ranges\":0,\"dead_letters\":0"
    let cases = [
      ("\(good),\(time(-1))", "fresh"), ("\(good),\(time(24))", "late"), (good, "late"),
      ("\(good),\"complete_through\":\"infinity\"", "late"),
      ("\(good),\"complete_through\":\"soon\"", "late"),
      ("\(good),\"complete_through\":1e999", "late"),
      ("\"missing_ranges\":0,\(time(-1))", "late"),
      ("\"missing_ranges\":null,\"dead_letters\":0,\(time(-1))", "late"),
      ("\"missing_ranges\":0,\"dead_letters\":1e999,\(time(-1))", "late"),
      ("\"missing_ranges\":0,\"dead_letters\":-1,\(time(-1))", "stale"),
      ("\"missing_ranges\":-1,\"dead_letters\":0,\(time(-1))", "stale"),
    ]
    for (members, state) in cases {
      try "{\"entity\":\"Opportunity\",\"pipeline\":\"opps\",\(members)}\n".write(
        toFile: "\(self.directory.path)/_freshness.ndjson", atomically: true, encoding: .utf8)
      #expect(try self.rows("state") == [[state]], "\(members)")
    }
  }

  @Test(
    "A line that this program does not write breaks no view, and the next run leaves it out",
    arguments: [
      "\"holes\":1e999", "\"last_run\":\"soon\"", "\"topics\":[1]", "\"topics\":\"x\"",
      "\"snapshot_rows\":1.5", "\"sink\":{}",
    ])
  func damagedLine(member: String) throws {
    let state = try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      return try self.commit(sink, self.position(through: 1_771_300_995_000), isLast: true)
    }
    let path = "\(self.directory.path)/_freshness.ndjson"
    let own = try String(contentsOfFile: path, encoding: .utf8)
    let other = "{\"entity\":\"Account\",\"pipeline\":\"other\",\"newer\":1}\n"
    let damaged = "{\"entity\":\"Opportunity\",\"pipeline\":\"other\",\(member)}\n"
    try (damaged + other + own).write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try self.rows("pipeline").contains(["opps"]))
    try self.run(from: state) { sink in
      try self.commit(sink, self.position(through: 1_771_300_995_000), isLast: true)
    }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == other + own)
  }

  @Test("A run whose _freshness.ndjson cannot be read exports its data, and warns once")
  func unreadable() throws {
    let path = "\(self.directory.path)/_freshness.ndjson"
    try FileManager.default.createDirectory(
      atPath: "\(path)/in", withIntermediateDirectories: true)
    var warnings: [String] = []
    try self.run { sink in
      sink.onOutdatedFreshness = { warnings.append($0) }
      for number in 0..<2 {
        self.clock.elapsed += .seconds(20)
        try self.write(TestEvent(number: number), to: sink)
        try self.commit(sink, self.position(through: 1_771_300_995_000), isLast: number == 1)
      }
      #expect(sink.finishedFileCount == 1)
    }
    #expect(warnings.count == 1 && warnings.first?.contains(path) == true)
  }

  @Test("A run that finishes no file describes its objects at intervals")
  func intervals() throws {
    let time: Int64 = 1_771_300_900_000
    try self.run { sink in
      try self.write(TestEvent(number: 0), to: sink)
      try self.commit(sink, self.position(through: time))
      self.clock.elapsed += .seconds(9)
      try self.commit(sink, self.position(through: time + 1000))
      #expect(try self.rows("complete_through") == [["2026-02-17 04:01:40+00"]])
      self.clock.elapsed += .seconds(1)
      try self.commit(sink, self.position(through: time + 2000))
      #expect(try self.rows("complete_through") == [["2026-02-17 04:01:42+00"]])
    }
  }

  @Test("Gap events, deletions and changes without a record are counted from the lines")
  func counts() throws {
    // r1 has a gap event, r2 was created, r3 was deleted after a gap event, r4 has only an update.
    try self.finish([
      ("gap", "GAP_UPDATE", "r1", "03:00"), ("change", "CREATE", "r2", "03:10"),
      ("gap", "GAP_UPDATE", "r3", "03:20"), ("change", "DELETE", "r3", "03:30"),
      ("change", "UPDATE", "r4", "03:40"), ("overflow", "GAP_OVERFLOW", "", "03:50"),
    ])
    func expect(_ row: [String?], _ snapshot: String) throws {
      try self.describe(snapshot)
      #expect(
        try self.rows("stale", "partial", "waiting_for_repair", "missing_ranges", "state") == [row])
      #expect(try self.rows("last_change") == [["2026-02-17 04:03:50+00"]])
    }
    try expect(["1", "2", "2", "1", "stale"], "")
    // A snapshot after the overflow.
    try expect(
      ["1", "2", "2", "0", "stale"], ",\"snapshot_begun_at\":\"2026-02-17T04:04:00.000Z\"")
    try expect(
      ["1", "2", "2", "1", "copying"], ",\"snapshot_state\":\"reading\"")
  }

  @Test("Records that a condition about values let in by an update do not make an object stale")
  func conditions() throws {
    try self.finish([
      ("change", "CREATE", "r1", "03:10"), ("change", "UPDATE", "r2", "03:40"),
    ])
    for (member, state) in [("", "stale"), ("false", "stale"), ("true", "late")] {
      try self.describe(member.isEmpty ? "" : ",\"dead_letters\":0,\"selects_changes\":\(member)")
      #expect(try self.rows("partial", "waiting_for_repair", "state") == [["1", "1", state]])
    }
    // A gap event still does.
    try self.finish([("gap", "GAP_UPDATE", "r2", "03:50")], ordinal: 5)
    #expect(try self.rows("stale", "state") == [["1", "stale"]])
  }

  /// Writes a line of `_freshness.ndjson`, as it is after a run.
  private func describe(_ members: String) throws {
    try "{\"entity\":\"Opportunity\",\"pipeline\":\"opps\",\"missing_ranges\":0\(members)}\n"
      .write(toFile: "\(self.directory.path)/_freshness.ndjson", atomically: true, encoding: .utf8)
  }

  /// Writes a finished file: kind, change type, record and commit time of each line.
  private func finish(
    _ events: [(kind: String, type: String, record: String, time: String)], ordinal: Int = 0
  ) throws {
    let names = ["_kind", "_change_type", "_record_id", "_commit_timestamp"]
    let lines = events.map { kind, type, record, time in
      let values = [kind, type, record, "2026-02-17T04:\(time).000Z"]
      let members = zip(names, values).map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",")
      return "{\"_topic\":\"\(Self.deals)\",\"_changed_fields\":[],\(members)}\n"
    }
    try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
      RecordLayout(
        topic: Self.deals, schemaID: "s", entity: "Opportunity", family: .changeEvent,
        slotCount: MetadataSlot.count + 1, fieldOrder: [MetadataSlot.count],
        columns: Column.changeMetadata(topic: Self.deals, schemaID: "s")
          + [Column("Name", MetadataSlot.count, .string)]),
      entityDirectory: "Opportunity")
    try ViewFiles.finish(
      lines.joined(), as: "opps-OpportunityChangeEvent-e1-00000000000\(ordinal).ndjson.zst",
      in: "\(self.directory.path)/Opportunity/commit_date=2026-02-17")
  }
}
