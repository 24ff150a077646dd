import JSON

@testable import Pipeline

/// Ends a run at the n-th call of anything that could be the last before a crash.
final class CrashPoint {
  struct Crash: Error {}
  private var left: Int
  private(set) var passed = 0
  /// Done at every call before it is made.
  var onPass: (() -> Void)?

  init(after calls: Int) { self.left = calls }

  func pass() throws {
    self.onPass?()
    if self.left == 0 { throw Crash() }
    self.left -= 1
    self.passed += 1
  }
}

/// Makes a store unavailable at its n-th call that could be, and for some calls after it.
final class OutagePlan {
  struct Outage: Error {}
  private let calls: Range<Int>
  private(set) var passed = 0
  /// For how long a store wants to be left alone.
  var delay = Duration.zero

  init(_ calls: Range<Int> = 0..<0) { self.calls = calls }

  /// Nil when the store is there.
  func next() -> StoreAnswer? {
    defer { self.passed += 1 }
    guard self.calls.contains(self.passed) else { return nil }
    return .unavailable(StoreOutage(Outage(), retryAt: .now + self.delay))
  }
}

/// What survives a crash: the last checkpoint, and with it the lines it says are durable.
final class MemoryStore {
  var topics: [String: JSONValue] = [:]
  var sinks: [String: JSONValue] = [:]
  var deadLetters: JSONValue = nil
  /// Raised when tables change, so that databases have to be made ready again.
  var tableChanges = 0
  /// The numbers of passes over changed records, each by the time that it is asked for.
  var otherPassNumbers: [Int] = []
  /// What was said of the object's present schema.
  var schemas: [String] = []
  /// What databases have committed.
  var transactions: [String: (topics: [String: JSONValue], lines: [String])] = [:]
  /// What databases have of records that were read.
  var reads: [String: MemoryReads] = [:]

  /// Those that a database holds.
  func positions(of sink: String) throws -> [String: TopicPosition] {
    try Self.positions(self.transactions[sink]?.topics ?? [:])
  }

  func positions() throws -> [String: TopicPosition] { try Self.positions(self.topics) }

  private static func positions(
    _ topics: [String: JSONValue]
  ) throws -> [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    for (name, json) in topics {
      positions[name] = try TopicPosition(json: json, topic: name)
    }
    return positions
  }

  func lines(of sink: String) -> [String] {
    self.transactions[sink]?.lines ?? self.sinks[sink]?.array?.compactMap(\.string) ?? []
  }
}

/// IDs of records that were read, in the order in which they came, and what belongs to them.
struct MemoryReads: Equatable {
  var records: [String] = []
  var pass: ReadPass?
  var unseen: [String] = []
  var calls = 0
}

/// Lines in memory that count only once a checkpoint holds them.
final class MemorySink: BufferingSink {
  let name: String
  private var lines: [String] = []
  private let crash: CrashPoint
  private(set) var commitSizes: [Int] = []
  /// The size of the largest batch that was written.
  private(set) var largestBatchByteCount = 0
  /// What a line counts for until it is flushed.
  var lineByteCount = 0
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
    self.lines += batch.lines
    self.largestBatchByteCount = max(self.largestBatchByteCount, batch.byteCount)
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
  var pendingByteCount: Int { (self.lines.count - self.flushed) * self.lineByteCount }
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

/// Lines and positions in memory, of one transaction. Refuses events by their ID.
final class MemoryDatabase: TableStore, LeasedStore, RepairingStore, OverlappingStore {
  typealias Line = (line: String, event: String, topic: String, epoch: Int, ordinal: Int64)

  let name: String
  var refusedEvents: Set<String> = []
  var outages = OutagePlan()
  var whileWaiting: (() -> Bool)?
  /// Whether its server is slow, so that everything that may be taken meanwhile is.
  var isSlow = false
  private(set) var notedLetters: [String] = []
  private(set) var leftOut: [String] = []
  /// Calls of `renewLease`.
  private(set) var renewalCount = 0
  private(set) var retractionCount = 0
  /// The most lines that were in it and not durable.
  private(set) var largestPendingCount = 0
  private let store: MemoryStore
  private let crash: CrashPoint
  private var lines: [String] = []
  private var written: [Line] = []
  /// What the sealed commit holds.
  private var sealed: [Line]?
  private var prepared: (topics: [String: TopicPosition], lines: [String])?
  private var knownLayouts: [RecordLayout] = []
  private var knownTableChanges = 0
  var takesReads = false
  /// Records that are not right, until they are read.
  var wrong: [String] = []
  private var openReads = MemoryReads()
  private var sealedReads = MemoryReads()

  init(name: String, store: MemoryStore, crash: CrashPoint) {
    self.name = name
    self.store = store
    self.crash = crash
    self.lines = store.transactions[name]?.lines ?? []
  }

  func isReady(for layout: RecordLayout) -> Bool {
    self.knownTableChanges == self.store.tableChanges
      && self.knownLayouts.contains { $0 === layout }
  }

  func noteCurrent(_ layout: RecordLayout) { self.store.schemas.append(layout.schemaID) }

  func noteRecent(_ layout: RecordLayout) {
    if self.store.schemas.last != layout.schemaID { self.store.schemas.append("not current") }
  }

  func makeReady(for layout: RecordLayout) throws -> StoreAnswer {
    precondition(self.sealed == nil, "asked for a layout while a commit is on its way")
    if let answer = self.outages.next() { return answer }
    if self.knownTableChanges != self.store.tableChanges { self.knownLayouts = [] }
    self.knownTableChanges = self.store.tableChanges
    self.knownLayouts.append(layout)
    return .done
  }

  func write(_ batch: RecordBatch) throws {
    try self.crash.pass()
    precondition(self.isReady(for: batch.layout), "written without being ready")
    for (line, event) in batch.linesOfEvents {
      let id = String(decoding: batch.bytes(event.eventID), as: UTF8.self)
      self.written.append((line, id, batch.layout.topic, batch.epoch, event.ordinal))
    }
    self.largestPendingCount = max(
      self.largestPendingCount, self.written.count + (self.sealed?.count ?? 0))
  }

  func seal(isLast: Bool) throws {
    precondition(self.sealed == nil, "sealed twice")
    self.sealed = self.written
    self.written = []
    (self.sealedReads, self.openReads) = (self.openReads, MemoryReads())
  }

  func prepare(_ commit: Commit) throws -> StoreAnswer {
    try self.crash.pass()
    if let answer = self.outages.next() { return answer }
    guard let sealed, self.prepared == nil else { preconditionFailure("nothing to prepare") }
    self.waitForServer()
    for letter in commit.letters where !self.notedLetters.contains(letter.eventID) {
      self.notedLetters.append(letter.eventID)
    }
    let accepted = sealed.filter { !self.refusedEvents.contains($0.event) }
    self.prepared = (commit.positions, self.lines + accepted.map(\.line))
    let refused = sealed.filter { self.refusedEvents.contains($0.event) }.map {
      RefusedEvent(
        topic: $0.topic, epoch: $0.epoch, ordinal: $0.ordinal, reason: "23514",
        refusal: DeadLetter.Refusal(sink: "database", sqlState: "23514"))
    }
    return refused.isEmpty ? .done : .refused(refused)
  }

  func retract() {
    self.retractionCount += 1
    self.prepared = nil
  }

  func commit() throws -> StoreAnswer {
    try self.crash.pass()
    if let answer = self.outages.next() { return answer }
    guard let prepared else { preconditionFailure("committed what was not prepared") }
    self.waitForServer()
    self.store.transactions[self.name] = (
      prepared.topics.mapValues(\.json), prepared.lines
    )
    self.lines = prepared.lines
    let reads = self.sealedReads
    self.store.reads[self.name, default: MemoryReads()].add(reads)
    self.sealed = nil
    self.prepared = nil
    try self.crash.pass()
    return .done
  }

  func complete() {}

  private func waitForServer() {
    while self.isSlow, self.whileWaiting?() == true {}
  }

  // MARK: Records that were read

  func takesReads(of layout: RecordLayout) -> Bool { self.takesReads }
  func pass(over entity: String) -> ReadPass? { self.store.reads[self.name]?.pass }
  func passNumber(over entity: String) -> Int {
    let others = self.store.otherPassNumbers
    self.store.otherPassNumbers = Array(others.dropFirst())
    return max(self.pass(over: entity)?.number ?? 0, others.first ?? 0)
  }
  func lastReads(of entity: String) -> PollSchedule.LastReads { .init() }

  func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    try self.crash.pass()
    precondition(self.isReady(for: reads.layout), "written without being ready")
    self.openReads.add(MemoryReads(records: reads.recordIDs, pass: pass))
  }

  func recordsToRepair(_ entity: String, after id: String, limit: Int) throws -> [String]? {
    let known = self.store.reads[self.name]
    return Array(
      self.wrong.filter {
        $0 > id && known?.records.contains($0) != true && known?.unseen.contains($0) != true
      }.prefix(limit))
  }

  func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64) {
    self.openReads.unseen += records
  }

  func needsPass(over entity: String, topic: String) -> Bool { false }
  func noteUnreadable(_ record: UnreadableRecord, of entity: String) {}
  func noteDescriptions(_ fields: [FieldDescription], of entity: String) {}
  func noteLeftOut(_ changes: RecordBatch) { self.leftOut.append(changes.layout.entity) }
  var isIdle: Bool { true }
  func takeRefusedReads() -> [String: Int] { [:] }
  func repairCallsOfDay() -> Int { 0 }
  func noteRepairCalls(_ count: Int) { self.openReads.calls += count }

  func renewLease() throws { self.renewalCount += 1 }

  var isDue = false
  var pendingByteCount: Int { 0 }
}

extension MemoryReads {
  fileprivate mutating func add(_ other: MemoryReads) {
    self.records += other.records
    self.pass = other.pass ?? self.pass
    self.unseen += other.unseen
    self.calls += other.calls
  }
}

extension RecordBatch {
  fileprivate var recordIDs: [String] {
    (0..<self.rowCount).map {
      String(decoding: self.row($0).text(MetadataSlot.recordID), as: UTF8.self)
    }
  }

  /// A line per row: number of its replay ID, event ID, first record ID.
  fileprivate var linesOfEvents: [(line: String, event: Event)] {
    self.events.flatMap { event in
      let replay = self.bytes(event.replayID)
      let number = Int(replay[6]) << 8 | Int(replay[7])
      return (event.firstRow..<event.firstRow + event.rowCount).map { row in
        var record = ""
        if self.row(row).presence[MetadataSlot.recordID] == RecordBatch.Presence.value {
          let cell = self.row(row).cells[MetadataSlot.recordID]
          record = String(decoding: self.bytes(RecordBatch.Range(cell: cell)), as: UTF8.self)
        }
        let id = String(decoding: self.bytes(event.eventID), as: UTF8.self)
        return ("\(number)/\(id)/\(record)", event)
      }
    }
  }

  fileprivate var lines: [String] { self.linesOfEvents.map(\.line) }
}
