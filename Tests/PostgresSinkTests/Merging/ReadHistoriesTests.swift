import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Random events and random reads of some records, in random transactions, against what the rules say.
private struct ReadHistories {
  /// Seconds.
  static let visibilityWait: Int64 = 40

  private(set) var sample: SampleEvents
  private(set) var events: [String: [(event: SampleEvent, arrivedAt: Int64)]] = [:]
  private(set) var reads: [String: [SampleRead]] = [:]
  private var rest: ArraySlice<SampleEvent>
  private var generator: SeededGenerator
  private let hidesFields: Bool
  private let comeInOrder: Bool
  private var now: Int64 = 1_700_000_000
  private var ordinal: Int64 = 0

  /// - Parameters:
  ///   - hidesFields: some reads lack fields.
  ///   - comeInOrder: no read has an older stamp than one before.
  init(seed: UInt64, count: Int, records: Int, hidesFields: Bool, comeInOrder: Bool = false) {
    self.sample = SampleEvents(seed: seed, count: count, records: records)
    self.rest = self.sample.events[...]
    self.generator = SeededGenerator(state: seed)
    self.hidesFields = hidesFields
    self.comeInOrder = comeInOrder
  }

  var isAtEnd: Bool { self.rest.isEmpty }
  var recordIDs: Set<String> { Set(self.events.keys).union(self.reads.keys) }

  /// The next transaction.
  mutating func next() -> (events: ArraySlice<SampleEvent>, arrivedAt: Int64, reads: [SampleRead]) {
    let some = self.rest.prefix(Int.random(in: 1...25, using: &self.generator))
    self.rest = self.rest.dropFirst(some.count)
    if let last = some.last { (self.now, self.ordinal) = (last.time + 3, last.ordinal) }
    for event in some { self.events[event.recordID, default: []].append((event, self.now)) }
    var reads: [SampleRead] = []
    for record in 0..<8 where Int.random(in: 0..<4, using: &self.generator) == 0 {
      if let read = self.read("00x\(record)") { reads.append(read) }
    }
    return (some, self.now, reads)
  }

  private mutating func read(_ id: String) -> SampleRead? {
    let before = self.reads[id] ?? []
    let newest = before.map(\.stamp).max()
    var stamp = self.now - Int64.random(in: 0...15, using: &self.generator)
    let isOlder = !self.comeInOrder && before.allSatisfy(\.isWhole)
    if let newest, stamp <= newest, !isOlder { stamp = newest + 1 }
    if before.contains(where: { $0.stamp == stamp }) { return nil }
    var read = SampleRead(
      recordID: id, ordinal: self.ordinal, stamp: stamp,
      readAt: self.now + Int64.random(in: 0...4, using: &self.generator),
      isDeletion: Int.random(in: 0..<6, using: &self.generator) == 0)
    let number = Int.random(in: 0..<1000, using: &self.generator)
    let values: [SampleEvent.Value] = [
      .text("read \(number)"), .integer(Int32(number)),
      .text((0..<5).map { "line \($0) of \(number)" }.joined(separator: "\n")),
      .texts(["tag"]), .number(Double(number) / 4),
    ]
    let kind = Int.random(in: 0..<6, using: &self.generator)
    let isWhole = !self.hidesFields || kind < 2
    for (name, value) in zip(SampleTables.columns.map(\.name), values) {
      if !isWhole && (kind == 5 || Int.random(in: 0..<3, using: &self.generator) == 0) { continue }
      read.values[name] = Int.random(in: 0..<5, using: &self.generator) == 0 ? .null : value
    }
    self.reads[id, default: []].append(read)
    return read
  }

  func reference(_ delete: PostgresSinkConfiguration.DeletePolicy) -> ReferenceFold {
    var reference = ReferenceFold(removesDeleted: delete == .remove)
    reference.texts = self.sample.texts
    for id in self.recordIDs {
      reference.merge(
        id, events: self.events[id] ?? [], reads: self.reads[id] ?? [],
        visibilityWait: Self.visibilityWait)
    }
    return reference
  }
}

@Suite("Histories of events and reads", .enabled(if: PostgresCluster.isAvailable))
struct ReadHistoriesTests {
  private static func loader(
    _ tables: SampleTables, _ delete: PostgresSinkConfiguration.DeletePolicy, hasHistory: Bool
  ) -> TableLoader {
    TableLoader(
      history: hasHistory ? tables.history : nil, current: tables.current, delete: delete,
      visibilityWait: ReadHistories.visibilityWait * 1000)
  }

  /// In one transaction, events before reads, as the sink does.
  private static func load(
    _ events: ArraySlice<SampleEvent>, arrivedAt: Int64, _ reads: [SampleRead],
    into tables: SampleTables, _ loader: TableLoader
  ) throws {
    let columns = tables.current.dataColumns
    var buffer = RowBuffer(columnCount: columns.count)
    for event in events { buffer.append(event, columns: columns) }
    var readBuffer = RowBuffer(columnCount: columns.count)
    for read in reads { readBuffer.append(read, columns: columns) }
    let connection = tables.connection
    try connection.begin()
    try loader.load(buffer, rows: buffer.rows.indices, over: connection, isRereading: false)
    let stored =
      loader.history != nil
      ? tables.history.qualifiedName
      : "\(SQLIdentifier.quoted(SampleTables.schema)).\"_etl_kept_thing\""
    // `now()` stands still within a transaction.
    try connection.query(
      "UPDATE \(stored) SET _loaded_at = to_timestamp(\(arrivedAt)) WHERE _loaded_at = now()")
    try loader.loadReads(readBuffer, rows: readBuffer.rows.indices, over: connection)
    try connection.execute("COMMIT")
  }

  private static func differences(
    _ tables: SampleTables, _ reference: ReferenceFold
  ) throws -> [String] {
    let reads = try tables.reads().difference(from: reference.shownReads()).map { "\($0)" }
    return try tables.differences(from: reference) + reads
  }

  @Test(
    "Random reads among random events give what the rules say, and a rebuild changes nothing",
    arguments: 1...8, PostgresSinkConfiguration.DeletePolicy.allCases)
  func randomReads(seed: UInt64, delete: PostgresSinkConfiguration.DeletePolicy) async throws {
    let tables = try await SampleTables(width: SampleTables.allWidth, takesReads: true)
    let loader = Self.loader(tables, delete, hasHistory: true)
    var histories = ReadHistories(
      seed: seed, count: 400, records: 8, hidesFields: !seed.isMultiple(of: 2))
    while !histories.isAtEnd {
      let (events, arrivedAt, reads) = histories.next()
      try Self.load(events, arrivedAt: arrivedAt, reads, into: tables, loader)
      let differences = try Self.differences(tables, histories.reference(delete))
      #expect(differences == [])
      guard differences.isEmpty else { return }
    }
    let refold = Refold(
      history: tables.history, current: tables.current, delete: delete,
      visibilityWait: ReadHistories.visibilityWait * 1000)
    let counts = try refold.refoldAll(over: tables.connection)
    #expect(counts.changed == 0 && counts.checked > 0)
    try tables.connection.execute(
      "TRUNCATE \(tables.current.qualifiedName), \"\(SampleTables.schema)\"._etl_tombstone")
    _ = try refold.refoldAll(over: tables.connection)
    let rebuilt = try Self.differences(tables, histories.reference(delete))
    #expect(rebuilt == [])
  }

  @Test("A read of some fields hides no other read of the record in the same transaction")
  func fieldsBesideAnotherRead() async throws {
    let tables = try await SampleTables(takesReads: true)
    let loader = Self.loader(tables, .mark, hasHistory: true)
    let time: Int64 = 1_700_000_000
    let images = ["00x1", "00x2"].map {
      SampleEvent(change: .create, recordID: $0, ordinal: 7, time: time)
    }
    try Self.load(images[...], arrivedAt: time + 1, [], into: tables, loader)
    let name = SampleTables.columns[0].name
    let later = time + 3 * ReadHistories.visibilityWait
    let fields = images.map {
      SampleRead(
        recordID: $0.recordID, ordinal: 7, stamp: time, readAt: later, isOfFields: true,
        values: [name: .text("of fields")])
    }
    var reads = fields.map { field in
      var read = field
      (read.isOfFields, read.readAt) = (false, later + 1)
      return read
    }
    reads[0].values[name] = .text("of all")
    (reads[1].isDeletion, reads[1].values) = (true, [:])
    try Self.load([], arrivedAt: later, fields + reads, into: tables, loader)
    #expect(
      try tables.rows(
        """
        SELECT id, CASE WHEN _deleted_at IS NULL THEN name END \
        FROM \(tables.current.qualifiedName) ORDER BY id
        """) == ["00x1|of all", "00x2|-"])
  }

  @Test("A read long after a deletion replaces its tombstone, whatever its stamp is")
  func readAfterTombstone() async throws {
    let tables = try await SampleTables(takesReads: true)
    let loader = Self.loader(tables, .remove, hasHistory: false)
    let time: Int64 = 1_700_000_000
    let values = [SampleTables.columns[0].name: SampleEvent.Value.text("back")]
    // It may come from a server that does not know of the deletion yet.
    let early = SampleRead(
      recordID: "00x1", ordinal: 7, stamp: time + 3, readAt: time + 4, values: values)
    var late = early
    late.readAt = time + 10 * ReadHistories.visibilityWait
    let image = SampleEvent(change: .create, recordID: "00x1", ordinal: 6, time: time - 600)
    let deletion = SampleEvent(change: .delete, recordID: "00x1", ordinal: 7, time: time)
    func load(_ events: [SampleEvent], _ reads: [SampleRead]) throws -> [String] {
      let columns = tables.current.dataColumns
      var buffer = RowBuffer(columnCount: columns.count)
      var read = RowBuffer(columnCount: columns.count)
      for event in events { buffer.append(event, columns: columns) }
      for each in reads { read.append(each, columns: columns) }
      try tables.connection.begin()
      try loader.load(
        buffer, rows: buffer.rows.indices, over: tables.connection, isRereading: false)
      try loader.loadReads(read, rows: read.rows.indices, over: tables.connection)
      try tables.connection.execute("COMMIT")
      return try tables.rows("SELECT id, name FROM \(tables.current.qualifiedName)")
    }
    #expect(try load([image, deletion], []) == [])
    #expect(try load([], [early]) == [])
    #expect(try load([], [late]) == ["00x1|back"])
  }

  @Test("A record that was not found comes after the last event, in loading and rebuilding")
  func unseenAfterAnImage() async throws {
    let tables = try await SampleTables(takesReads: true)
    let loader = Self.loader(tables, .mark, hasHistory: true)
    let images = (1...20).map {
      SampleEvent(change: .create, recordID: "00x\($0)", ordinal: 7, time: 1_700_000_000)
    }
    try Self.load(images[...], arrivedAt: 1_700_000_001, [], into: tables, loader)
    try tables.connection.begin()
    try loader.noteUnseen(
      images.map(\.recordID), epoch: 1, ordinal: 7, over: tables.connection)
    try tables.connection.execute("COMMIT")
    let states = try tables.rows(
      "SELECT DISTINCT _stale, _event_id FROM \(tables.current.qualifiedName)")
    #expect(states == ["t|unseen"])
    #expect(try tables.refoldAll().changed == 0)
  }

  @Test(
    "Without a history, random reads give what the rules say for the duration of a pass",
    arguments: 1...8, PostgresSinkConfiguration.DeletePolicy.allCases)
  func randomReadsOfAPass(
    seed: UInt64, delete: PostgresSinkConfiguration.DeletePolicy
  ) async throws {
    let tables = try await SampleTables(width: SampleTables.allWidth, takesReads: true)
    let loader = Self.loader(tables, delete, hasHistory: false)
    loader.isKeeping = true
    try loader.kept?.create(over: tables.connection)
    var histories = ReadHistories(
      seed: seed, count: 400, records: 8, hidesFields: false, comeInOrder: true)
    while !histories.isAtEnd {
      let (events, arrivedAt, reads) = histories.next()
      try Self.load(events, arrivedAt: arrivedAt, reads, into: tables, loader)
      let differences = try Self.differences(tables, histories.reference(delete))
      #expect(differences == [])
      guard differences.isEmpty else { return }
    }
  }
}
