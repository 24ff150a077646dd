import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Dead letters folded with their rows", .enabled(if: PostgresCluster.isAvailable))
struct FoldedGapTests {
  /// Transactions of a stream some of whose events became dead letters.
  private struct Stream {
    var columns: [TableColumn]
    var transactions: [(buffer: RowBuffer, letters: [ResyncTable.Entry])] = []

    init(_ sample: SampleEvents, seed: UInt64, columns: [TableColumn]) {
      self.columns = columns
      var generator = SeededGenerator(state: seed)
      var rest = sample.events[...]
      while !rest.isEmpty {
        let some = rest.prefix(Int.random(in: 1...80, using: &generator))
        rest = rest.dropFirst(some.count)
        var buffer = RowBuffer(columnCount: columns.count)
        var letters: [ResyncTable.Entry] = []
        for event in some {
          guard Int.random(in: 0..<8, using: &generator) == 0 else {
            buffer.append(event, columns: columns)
            continue
          }
          let letter = ResyncTable.Entry(
            .deadLetter, recordID: event.change == .wildcard ? "00x*" : event.recordID,
            eventID: event.eventID, replayID: "\(event.ordinal)",
            commitTimestamp: event.time * 1000, epoch: event.epoch, ordinal: event.ordinal)
          letters.append(letter)
          buffer.appendGap(letter)
        }
        self.transactions.append((buffer, letters))
      }
    }
  }

  @Test(
    "They mark the rows that they mark when they are told afterwards",
    arguments: [1, 2, 3, 4], PostgresSinkConfiguration.DeletePolicy.allCases)
  func sameAsAfterwards(
    seed: UInt64, delete: PostgresSinkConfiguration.DeletePolicy
  ) async throws {
    let sample = SampleEvents(seed: seed, count: 500, records: seed.isMultiple(of: 2) ? 6 : 100)
    let (folded, told) = (try await SampleTables(), try await SampleTables())
    let (loader, other) = (folded.loader(delete), told.loader(delete))
    let stream = Stream(sample, seed: seed, columns: folded.current.dataColumns)
    #expect(stream.transactions.contains { !$0.letters.isEmpty })
    for (buffer, letters) in stream.transactions {
      let rows = buffer.rows.indices
      try folded.connection.begin()
      if loader.takesGaps(of: buffer) {
        try loader.resync?.noteDeadLetters(letters, over: folded.connection)
        try loader.load(
          buffer, rows: rows, foldsGaps: true, over: folded.connection, isRereading: false)
      } else {
        #expect(rows.isEmpty)
        try loader.noteDeadLetters(letters, among: buffer, over: folded.connection)
      }
      try folded.connection.execute("COMMIT")

      try told.connection.begin()
      try other.load(buffer, rows: rows, over: told.connection, isRereading: false)
      try other.noteDeadLetters(letters, among: buffer, over: told.connection)
      try told.connection.execute("COMMIT")
      #expect(try folded.currentRows() == told.currentRows())
      #expect(try folded.tombstones() == told.tombstones())
    }
    let notes = """
      SELECT entity, kind, record_id, event_id, replay_id, epoch, ordinal \
      FROM "\(SampleTables.schema)"._etl_resync ORDER BY kind, event_id, record_id
      """
    #expect(try folded.rows(notes) == told.rows(notes))
    #expect(try folded.refoldAll(delete).changed == 0)
  }

  @Test("Between the folds of a transaction, their order among the rows stays")
  func severalFolds() async throws {
    let tables = try await SampleTables(width: 1500)
    let loader = tables.loader()
    var buffer = RowBuffer(columnCount: tables.current.dataColumns.count)
    var letters: [ResyncTable.Entry] = []
    for index in 0..<1000 {
      let letter = ResyncTable.Entry(
        .deadLetter, recordID: "00x\(index)", eventID: "letter-\(index)", commitTimestamp: 101_000,
        epoch: 1, ordinal: Int64(index * 2))
      letters.append(letter)
      buffer.appendGap(letter)
      buffer.append(
        SampleEvent(
          change: index.isMultiple(of: 2) ? .create : .update, recordID: "00x\(index)",
          ordinal: Int64(index * 2 + 1), time: 101, values: ["name": .text("a")]),
        columns: tables.current.dataColumns)
    }
    #expect(loader.takesGaps(of: buffer))
    try tables.connection.begin()
    try loader.resync?.noteDeadLetters(letters, over: tables.connection)
    try loader.load(
      buffer, rows: buffer.rows.indices, foldsGaps: true, over: tables.connection,
      isRereading: false)
    try tables.connection.execute("COMMIT")
    let count = "SELECT count(*), count(*) FILTER (WHERE _stale), count(name) FROM "
    #expect(try tables.rows(count + tables.current.qualifiedName) == ["1000|500|1000"])
    #expect(try tables.refoldAll().changed == 0)
  }

  @Test("A gap right before an event that needs the table is folded once")
  func beforeARevival() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader(.remove)
    var buffer = RowBuffer(columnCount: tables.current.dataColumns.count)
    let letter = ResyncTable.Entry(
      .deadLetter, recordID: "001", eventID: "letter", commitTimestamp: 101_000, epoch: 1,
      ordinal: 1)
    buffer.appendGap(letter)
    buffer.append(
      SampleEvent(change: .gapCreate, recordID: "001", ordinal: 2, time: 102),
      columns: tables.current.dataColumns)
    try tables.connection.begin()
    try loader.resync?.noteDeadLetters([letter], over: tables.connection)
    try loader.load(
      buffer, rows: buffer.rows.indices, foldsGaps: true, over: tables.connection,
      isRereading: false)
    try tables.connection.execute("COMMIT")
    let query = "SELECT id, _ordinal, _stale FROM \(tables.current.qualifiedName)"
    #expect(try tables.rows(query) == ["001|2|t"])
    #expect(try tables.refoldAll(.remove).changed == 0)
  }

  @Test("Rows that are read again, or that a read may contain, leave them to the history")
  func leftToHistory() async throws {
    let tables = try await SampleTables(takesReads: true)
    let loader = tables.loader()
    func buffer(epoch: Int32, letterTime: Int64) -> RowBuffer {
      var buffer = RowBuffer(columnCount: tables.current.dataColumns.count)
      buffer.append(
        SampleEvent(change: .create, recordID: "001", epoch: epoch, ordinal: 1, time: 500),
        columns: tables.current.dataColumns)
      buffer.appendGap(
        ResyncTable.Entry(
          .deadLetter, recordID: "002", eventID: "a", commitTimestamp: letterTime, epoch: epoch,
          ordinal: 2))
      return buffer
    }
    #expect(loader.takesGaps(of: buffer(epoch: 1, letterTime: 100_000)))
    let alone = tables.loader(hasHistory: false)
    #expect(!alone.takesGaps(of: buffer(epoch: 1, letterTime: 100_000)))
    #expect(!loader.takesGaps(of: buffer(epoch: 2, letterTime: 100_000)))
    loader.newestStamp = 300_000
    #expect(!loader.takesGaps(of: buffer(epoch: 1, letterTime: 100_000)))
    #expect(loader.takesGaps(of: buffer(epoch: 1, letterTime: 500_000)))
  }
}
