import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// One transaction per range of events.
func load(
  _ events: ArraySlice<SampleEvent>, into tables: SampleTables, _ loader: TableLoader,
  isRereading: Bool = false
) throws {
  let columns = tables.current.dataColumns
  var buffer = RowBuffer(columnCount: columns.count)
  for event in events { buffer.append(event, columns: columns) }
  try tables.connection.begin()
  try loader.load(
    buffer, rows: 0..<buffer.rows.count, over: tables.connection, isRereading: isRereading)
  try tables.connection.execute("COMMIT")
}

extension SampleTables {
  func loader(
    _ delete: PostgresSinkConfiguration.DeletePolicy = .mark, hasHistory: Bool = true
  ) -> TableLoader {
    TableLoader(history: hasHistory ? self.history : nil, current: self.current, delete: delete)
  }

  /// Rows and tombstones that are not what they have to be; `+` is the table's.
  func differences(from reference: ReferenceFold) throws -> [String] {
    let expected = reference.shownRows(self.current.dataColumns) + reference.shownTombstones()
    return (try self.currentRows() + self.tombstones()).difference(from: expected).map {
      switch $0 {
      case .insert(_, let row, _): "+ \(row)"
      case .remove(_, let row, _): "- \(row)"
      }
    }
  }

  func refoldAll(
    _ delete: PostgresSinkConfiguration.DeletePolicy = .mark
  ) throws -> Refold.Counts {
    try Refold(history: self.history, current: self.current, delete: delete)
      .refoldAll(over: self.connection)
  }
}

@Suite("Table loader", .enabled(if: PostgresCluster.isAvailable)) struct TableLoaderTests {
  @Test(
    "Random events in random transactions give what the rules say, and a rebuild changes nothing",
    arguments: [1, 2, 3, 4, 5, 6], PostgresSinkConfiguration.DeletePolicy.allCases)
  func randomEvents(seed: UInt64, delete: PostgresSinkConfiguration.DeletePolicy) async throws {
    let tables = try await SampleTables()
    let loader = tables.loader(delete)
    let sample = SampleEvents(seed: seed, count: 700, records: seed.isMultiple(of: 2) ? 7 : 150)
    var reference = ReferenceFold(removesDeleted: delete == .remove)
    reference.texts = sample.texts
    var generator = SeededGenerator(state: seed)
    var rest = sample.events[...]
    while !rest.isEmpty {
      let some = rest.prefix(Int.random(in: 1...120, using: &generator))
      rest = rest.dropFirst(some.count)
      try load(some, into: tables, loader)
      for event in some { reference.apply(event) }
      let differences = try tables.differences(from: reference)
      #expect(differences == [])
    }
    let count = try tables.rows("SELECT count(*) FROM \(tables.history.qualifiedName)")
    #expect(count == ["700"])
    let counts = try tables.refoldAll(delete)
    #expect(counts.changed == 0 && counts.checked > 0)
    // From nothing, all of it comes back.
    try tables.connection.execute(
      "TRUNCATE \(tables.current.qualifiedName), \"\(SampleTables.schema)\"._etl_tombstone")
    _ = try tables.refoldAll(delete)
    let rebuilt = try tables.differences(from: reference)
    #expect(rebuilt == [])
  }

  @Test(
    "A stream that is read again adds missing events and repeats nothing",
    arguments: PostgresSinkConfiguration.DeletePolicy.allCases)
  func rereading(delete: PostgresSinkConfiguration.DeletePolicy) async throws {
    let tables = try await SampleTables()
    let loader = tables.loader(delete)
    var sample = SampleEvents(seed: 11, count: 400, records: 12)
    // Commit times without ties or steps back: between epochs they are all there is to go by.
    let events = sample.events.enumerated().map { index, event in
      var event = event
      event.time = 1_700_000_000 + Int64(index)
      return event
    }
    sample.events = events
    var generator = SeededGenerator(state: 5)
    let held = events.filter { _ in Bool.random(using: &generator) }
    try load(held[...], into: tables, loader)
    // Read again from the first event on, with other positions, some events twice in a transaction.
    let again = events.enumerated().map { index, event in
      var event = event
      if !held.contains(where: { $0.ordinal == event.ordinal }) { event.epoch = 2 }
      event.ordinal = Int64(index)
      return (event, held.first { $0.time == event.time })
    }
    let sent = again.map { $0.1 ?? $0.0 }
    let half = sent.count / 2
    try load(sent[..<half] + sent[(half - 20)..<half], into: tables, loader, isRereading: true)
    try load(sent[(half - 50)...], into: tables, loader, isRereading: true)
    var reference = ReferenceFold(removesDeleted: delete == .remove)
    reference.texts = sample.texts
    for event in sent { reference.apply(event) }
    let count = try tables.rows("SELECT count(*) FROM \(tables.history.qualifiedName)")
    #expect(count == ["400"])
    let differences = try tables.differences(from: reference)
    #expect(differences == [])
    #expect(try tables.refoldAll(delete).changed == 0)
  }

  @Test("Rows that arrive a second time change nothing")
  func olderThanTheRow() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    let sample = SampleEvents(seed: 3, count: 200, records: 9)
    try load(sample.events[...], into: tables, loader)
    let before = try tables.currentRows()
    // Without its history the table would take the older value, with it the record is rebuilt.
    try load(sample.events[20..<60], into: tables, loader)
    #expect(try tables.currentRows() == before)
  }

  @Test("Without a history, a re-reading epoch changes only rows with a later commit time")
  func currentAloneAcrossEpochs() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader(hasHistory: false)
    func event(
      _ change: RowBuffer.Change, _ name: String, epoch: Int32, _ ordinal: Int64, time: Int64
    ) -> SampleEvent {
      SampleEvent(
        change: change, recordID: "001", epoch: epoch, ordinal: ordinal, time: time,
        values: ["name": .text(name)])
    }
    try load(
      [event(.create, "a", epoch: 1, 10, time: 100), event(.update, "b", epoch: 1, 11, time: 200)],
      into: tables, loader)
    try load(
      [
        event(.create, "a", epoch: 2, 1, time: 100), event(.update, "b", epoch: 2, 2, time: 200),
      ], into: tables, loader, isRereading: true)
    let columns = "name, _epoch, _ordinal, _partial"
    let query = "SELECT \(columns) FROM \(tables.current.qualifiedName)"
    #expect(try tables.rows(query) == ["b|1|11|f"])
    try load(
      [event(.update, "b", epoch: 2, 2, time: 200), event(.update, "c", epoch: 2, 3, time: 300)],
      into: tables, loader, isRereading: true)
    #expect(try tables.rows(query) == ["c|2|3|f"])
    try load([event(.update, "d", epoch: 2, 4, time: 300)], into: tables, loader, isRereading: true)
    #expect(try tables.rows(query) == ["d|2|4|f"])

    let removing = tables.loader(.remove, hasHistory: false)
    try load([event(.delete, "", epoch: 2, 5, time: 400)], into: tables, removing)
    let again = [
      event(.create, "a", epoch: 3, 1, time: 100), event(.delete, "", epoch: 3, 2, time: 400),
    ]
    try load(again[...], into: tables, removing, isRereading: true)
    #expect(try tables.rows(query) == [])
    try load([event(.undelete, "e", epoch: 3, 3, time: 500)], into: tables, removing)
    #expect(try tables.rows(query) == ["e|3|3|f"])
    #expect(try tables.tombstones() == [])
  }

  @Test("A change among the dead letters makes its record stale until the next full image")
  func deadLetters() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    func event(_ change: RowBuffer.Change, _ ordinal: Int64, _ id: String = "001") -> SampleEvent {
      SampleEvent(
        change: change, recordID: id, ordinal: ordinal, time: 100 + ordinal,
        values: ["name": .text("\(ordinal)")])
    }
    func note(_ ordinal: Int64, _ id: String) throws {
      try tables.connection.begin()
      try loader.noteDeadLetters(
        [
          ResyncTable.Entry(
            .deadLetter, recordID: id, eventID: "event-1-\(ordinal)",
            commitTimestamp: (100 + ordinal) * 1000, epoch: 1, ordinal: ordinal)
        ], over: tables.connection)
      try tables.connection.execute("COMMIT")
    }
    try load([event(.create, 1)], into: tables, loader)
    try note(2, "001")
    try note(3, "002")
    try load([event(.update, 4), event(.update, 5, "002")], into: tables, loader)
    let query = """
      SELECT id, name, _stale, _partial FROM \(tables.current.qualifiedName) ORDER BY id
      """
    #expect(try tables.rows(query) == ["001|4|t|f", "002|5|t|t"])
    #expect(try tables.refoldAll().changed == 0)
    // The event of 001 is redriven: its row is not stale any more, since nothing is missing.
    try load([event(.update, 2)], into: tables, loader, isRereading: true)
    #expect(try tables.rows(query) == ["001|4|f|f", "002|5|t|t"])
    let open = "SELECT record_id FROM \"\(SampleTables.schema)\"._etl_resync WHERE done_at IS NULL"
    #expect(try tables.rows(open) == ["002"])
    try load([event(.create, 8, "002")], into: tables, loader)
    #expect(try tables.rows(query) == ["001|4|f|f", "002|8|f|f"])
    #expect(try tables.refoldAll().changed == 0)
    // Told after what followed it: a full image had come meanwhile.
    try note(7, "002")
    #expect(try tables.rows(query) == ["001|4|f|f", "002|8|f|f"])
  }

  @Test("Events and dead letters of more records than one fold takes are all loaded")
  func severalFolds() async throws {
    let tables = try await SampleTables(width: 1500)
    let loader = tables.loader(hasHistory: false)
    let events = (0..<1000).map {
      SampleEvent(
        change: .create, recordID: "00x\($0)", ordinal: Int64($0), time: 100,
        values: ["name": .text("a")])
    }
    try load(events[...], into: tables, loader)
    let count = "SELECT count(*), count(*) FILTER (WHERE _stale) FROM "
    #expect(try tables.rows(count + tables.current.qualifiedName) == ["1000|0"])
    let letters = events.map {
      ResyncTable.Entry(
        .deadLetter, recordID: $0.recordID, eventID: "later-\($0.ordinal)",
        commitTimestamp: 101_000, epoch: 1, ordinal: 1000 + $0.ordinal)
    }
    try tables.connection.begin()
    try loader.noteDeadLetters(letters, over: tables.connection)
    try tables.connection.execute("COMMIT")
    #expect(try tables.rows(count + tables.current.qualifiedName) == ["1000|1000"])
  }

  @Test("The records of dead letters are rebuilt without a scan of the complete history")
  func rebuildsByIndex() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    let events = (0..<4000).map {
      SampleEvent(
        change: .create, recordID: "00x\($0)", ordinal: Int64($0), time: 100,
        values: ["name": .text("a")])
    }
    try load(events[...], into: tables, loader)
    try tables.connection.execute("ANALYZE \(tables.history.qualifiedName)")
    let letters = events.prefix(200).map {
      ResyncTable.Entry(
        .deadLetter, recordID: $0.recordID, eventID: "later-\($0.ordinal)",
        commitTimestamp: 101_000, epoch: 1, ordinal: 4000 + $0.ordinal)
    }
    let scans = """
      SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables \
      WHERE relid = '\(tables.history.qualifiedName)'::regclass
      """
    try tables.connection.begin()
    // The view may also count what the connection did before.
    let before = try tables.connection.query(scans)
    try loader.noteDeadLetters(letters, over: tables.connection)
    let after = try tables.connection.query(scans)
    // What the transaction executes from here on is planned as usual.
    let setting = try tables.rows("SHOW enable_seqscan")
    try tables.connection.execute("COMMIT")
    #expect(after.number(0, 0) == before.number(0, 0))
    #expect(try #require(after.number(0, 1)) > #require(before.number(0, 1)))
    #expect(setting == ["on"])
    let stale = "SELECT count(*) FROM \(tables.current.qualifiedName) WHERE _stale"
    #expect(try tables.rows(stale) == ["200"])
  }

  @Test("Current rows are searched by key, without a scan of the complete table")
  func searchesByKey() async throws {
    let tables = try await SampleTables(takesReads: true)
    let events = (0..<4000).map {
      SampleEvent(
        change: .create, recordID: "00x\($0)", ordinal: Int64($0), time: 100,
        values: ["name": .text("a")])
    }
    try load(events[...], into: tables, tables.loader())
    try tables.connection.execute("ANALYZE \(tables.current.qualifiedName)")
    let scans = """
      SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables \
      WHERE relid = '\(tables.current.qualifiedName)'::regclass
      """
    let current = CurrentTable(tables.current, delete: .mark)
    try tables.connection.begin()
    let before = try tables.connection.query(scans)
    let ids = (3000..<5000).map { String?.some("00x\($0)") }
    let rows = try #require(try current.rows(of: ids, over: tables.connection))
    let after = try tables.connection.query(scans)
    try tables.connection.execute("COMMIT")
    #expect(rows.count == 1000)
    #expect(after.number(0, 0) == before.number(0, 0))
    #expect(try #require(after.number(0, 1)) > #require(before.number(0, 1)))
  }

  @Test("Gap, overflow and wildcard events are noted once, however often they are read")
  func resyncEntries() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    let events: [SampleEvent] = [
      SampleEvent(change: .gapUpdate, recordID: "001", ordinal: 1, time: 100),
      SampleEvent(change: .overflow, recordID: "000000000000000AAA", ordinal: 2, time: 100),
      SampleEvent(change: .wildcard, recordID: "001*", ordinal: 3, time: 101),
    ]
    try load(events[...], into: tables, loader)
    try load(events[...], into: tables, loader, isRereading: true)
    let entries = try tables.rows(
      """
      SELECT entity, kind, record_id, event_id, replay_id, epoch, ordinal, \
      extract(epoch FROM commit_timestamp)::int FROM "\(SampleTables.schema)"._etl_resync ORDER BY id
      """)
    #expect(
      entries == [
        "Thing|gap|001|event-1-1|replay-1|1|1|100",
        "Thing|overflow|000000000000000AAA|event-1-2|replay-2|1|2|100",
        "Thing|wildcard|001*|event-1-3|replay-3|1|3|101",
      ])
    let rows = try tables.rows("SELECT id, _stale, _partial FROM \(tables.current.qualifiedName)")
    #expect(rows == ["001|t|t"])
  }

  @Test("A rebuild leaves a row unchanged that is newer than the history")
  func historyBeginsLate() async throws {
    let tables = try await SampleTables()
    let create = SampleEvent(
      change: .create, recordID: "001", ordinal: 1, time: 100,
      values: ["name": .text("a"), "order": .integer(7)])
    try load([create], into: tables, tables.loader(hasHistory: false))
    let update = SampleEvent(
      change: .update, recordID: "001", ordinal: 2, time: 101, values: ["name": .text("b")])
    try load([update], into: tables, tables.loader())
    #expect(try tables.refoldAll() == Refold.Counts(checked: 1, changed: 0))
    let rows = try tables.rows(
      "SELECT name, \"order\", _partial FROM \(tables.current.qualifiedName)")
    #expect(rows == ["b|7|f"])
  }

  @Test(
    "Many new records are loaded beside known, deleted and partial ones",
    arguments: PostgresSinkConfiguration.DeletePolicy.allCases)
  func manyNewRecords(delete: PostgresSinkConfiguration.DeletePolicy) async throws {
    let tables = try await SampleTables(width: 140)
    let columns = tables.current.dataColumns
    let loader = tables.loader(delete)
    var reference = ReferenceFold(removesDeleted: delete == .remove)
    var generator = SeededGenerator(state: 77)
    var ordinal: Int64 = 0
    for changes in [
      [RowBuffer.Change.create], [.delete, .update], [.create, .create, .update, .gapCreate],
      [.delete, .create], [.undelete], [.update],
    ] {
      var events: [SampleEvent] = []
      for number in 0..<200 where Int.random(in: 0..<4, using: &generator) != 0 {
        ordinal += 1
        var event = SampleEvent(
          change: changes[number % changes.count], recordID: "00x\(number % 170)",
          ordinal: ordinal, time: 1000 + ordinal)
        for column in columns
        where column.type == .text && Int.random(in: 0..<3, using: &generator) == 0 {
          // A diff without a base that fits.
          let isDiff = event.change == .update && number % 9 == 0
          event.values[column.name] = isDiff ? .diff("--- \n") : .text("\(ordinal)")
        }
        events.append(event)
        reference.apply(event)
      }
      try load(events[...], into: tables, loader)
      let differences = try tables.differences(from: reference)
      #expect(differences == [])
    }
    #expect(try tables.refoldAll(delete).changed == 0)
  }

  /// The long texts take the values that are computed beyond what a fold holds.
  @Test(
    "More diffs than one transaction holds at a time are all applied",
    arguments: [1, 4000])
  func manyDiffs(_ wordCount: Int) async throws {
    let text = String(repeating: "word", count: wordCount)
    let tables = try await SampleTables()
    let loader = tables.loader()
    let count = RecordFold.maxPendingDiffs * 3
    func event(
      _ ordinal: Int, _ change: RowBuffer.Change, _ value: SampleEvent.Value
    ) -> SampleEvent {
      SampleEvent(
        change: change, recordID: "00x\(ordinal % count)", ordinal: Int64(ordinal),
        time: 100 + Int64(ordinal / count), values: ["description": value])
    }
    func diff(_ ordinal: Int, _ old: String, _ new: String) -> SampleEvent.Value {
      let hash = TextDiffTests.hash("\(text)\n\(new)\n\(ordinal % count)")
      return .diff("--- \n+++ \(hash)\n@@ -2 +2 @@\n-\(old)\n+\(new)")
    }
    let creates = (0..<count).map { event($0, .create, .text("\(text)\na\n\($0)")) }
    try load(creates[...], into: tables, loader)
    // The second diff of a record finds the first one's value computed already.
    let updates =
      (count..<count * 2).map { event($0, .update, diff($0, "a", "b")) }
      + (count * 2..<count * 3).map { event($0, .update, diff($0, "b", "c")) }
    try load(updates[...], into: tables, loader)
    let right = try tables.rows(
      """
      SELECT count(*) FROM \(tables.current.qualifiedName) \
      WHERE description = '\(text)' || E'\\nc\\n' || substr(id, 4) AND _stale_fields IS NULL
      """)
    #expect(right == ["\(count)"])
    #expect(try tables.refoldAll() == Refold.Counts(checked: count, changed: 0))
  }

  @Test("Pending diffs are resolved within one fold")
  func diffsOfOneFold() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    let count = RecordFold.maxPendingDiffs * 2
    let creates = (0..<count).map {
      SampleEvent(
        change: .create, recordID: "00x\($0)", ordinal: Int64($0), time: 100,
        values: ["description": .text("a\n")])
    }
    try load(creates[...], into: tables, loader)
    try tables.connection.execute(
      """
      CREATE TABLE public.updates (a int);
      CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO public.updates VALUES (1); RETURN NULL; END $$;
      CREATE TRIGGER note AFTER UPDATE ON \(tables.current.qualifiedName)
      FOR EACH STATEMENT EXECUTE FUNCTION public.note()
      """)
    let diff = "--- \n+++ \(TextDiffTests.hash("b\n"))\n@@ -1 +1 @@\n-a\n+b"
    let updates = (0..<count).map {
      SampleEvent(
        change: .update, recordID: "00x\($0)", ordinal: Int64(count + $0), time: 101,
        values: ["description": .diff(diff)])
    }
    try load(updates[...], into: tables, loader)
    #expect(try tables.rows("SELECT count(*) FROM public.updates") == ["1"])
  }

  @Test("A record with more history than one fetch is rebuilt completely")
  func longHistory() async throws {
    let tables = try await SampleTables()
    let loader = tables.loader()
    let sample = SampleEvents(seed: 21, count: 1700, records: 2)
    var reference = ReferenceFold()
    reference.texts = sample.texts
    for event in sample.events { reference.apply(event) }
    try load(sample.events[...], into: tables, loader)
    try tables.connection.execute("TRUNCATE \(tables.current.qualifiedName)")
    #expect(try tables.refoldAll() == Refold.Counts(checked: 2, changed: 2))
    let differences = try tables.differences(from: reference)
    #expect(differences == [])
  }

  @Test("In rows encoded before a column was added, it is null in new records and kept in others")
  func columnsAddedMeanwhile() async throws {
    let tables = try await SampleTables()
    func event(_ change: RowBuffer.Change, _ id: String, _ ordinal: Int64) -> SampleEvent {
      SampleEvent(
        change: change, recordID: id, ordinal: ordinal, time: 100 + ordinal,
        values: ["name": .text("\(ordinal)"), "order": .integer(7)])
    }
    let loader = tables.loader()
    try load([event(.create, "001", 1), event(.create, "002", 2)], into: tables, loader)
    var buffer = RowBuffer(columnCount: 1)
    let columns = Array(tables.current.dataColumns.prefix(1))
    for (ordinal, change) in [RowBuffer.Change.update, .create].enumerated() {
      buffer.append(event(change, "00\(ordinal + 1)", Int64(ordinal) + 3), columns: columns)
    }
    try tables.connection.begin()
    try loader.load(buffer, rows: 0..<2, over: tables.connection, isRereading: false)
    try tables.connection.execute("COMMIT")
    let rows = try tables.rows(
      "SELECT id, name, \"order\" FROM \(tables.current.qualifiedName) ORDER BY id")
    #expect(rows == ["001|3|7", "002|4|-"])
    #expect(try tables.refoldAll().changed == 0)
  }
}
