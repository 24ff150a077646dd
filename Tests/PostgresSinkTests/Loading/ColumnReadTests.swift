import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Columns that come after their records were read, and fields that cannot always be read.
@Suite("Columns that rows lack", .enabled(if: PostgresCluster.isAvailable))
struct ColumnReadTests {
  private static let stamp: Int64 = 1_771_300_000_000
  private static let note = MetadataSlot.count + 3
  private static let modes: [PostgresSinkConfiguration.Mode] = [.both, .current]

  private static func run(
    _ database: TestDatabase, _ mode: PostgresSinkConfiguration.Mode, ordinal: Int64 = 0
  ) throws -> SinkRun {
    try SinkRun(database, ordinal: ordinal) {
      $0.mode = mode
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }
  }

  private static let wider = SinkRun.layout(
    schemaID: "schema-2", [Column("Note__c", 3, .string, salesforceType: "Data:Text")])

  /// Reads of records that have the ID as their name.
  private static func reads(
    _ records: [String: [Int: TestCell]], _ layout: RecordLayout, type: String = "SNAPSHOT",
    stamp: Int64 = ColumnReadTests.stamp
  ) -> RecordBatch {
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    batch.readAt = .now
    for (id, values) in records.sorted(by: { $0.key < $1.key }) {
      batch.addChange(
        type, id, ordinal: 1, kind: .snapshot, eventID: "\(type):1:\(id):\(stamp)",
        commitTimestamp: stamp, values)
    }
    return batch
  }

  private static func whole(_ name: String) -> [Int: TestCell] {
    [SinkRun.name: .text(name), SinkRun.parent: .null, SinkRun.amount: .double(1)]
  }

  private static func write(_ reads: RecordBatch, _ pass: ReadPass? = nil, to run: SinkRun) throws {
    guard case .done = try run.sink.makeReady(for: reads.layout) else { return }
    try run.sink.write(reads, pass: pass)
  }

  /// Reads records in a pass from its beginning to its end.
  private static func pass(
    _ reads: RecordBatch, part: String? = nil, number: Int = 1, to run: SinkRun,
    before: () throws -> Void = {}
  ) throws {
    var pass = ReadPass(entity: "Opportunity", part: part, number: number)
    try Self.write(RecordBatch(layout: reads.layout), pass, to: run)
    try run.commit()
    try before()
    pass.state = .reading
    pass.job = "750"
    try Self.write(reads, pass, to: run)
    try run.commit()
    pass.state = .complete
    try Self.write(RecordBatch(layout: reads.layout), pass, to: run)
    try run.commit()
  }

  private static func notes(_ run: SinkRun) throws -> [String] {
    try run.eye.rows(
      "SELECT id, note__c, _event_id, _change_type FROM salesforce.opportunity ORDER BY id"
    ).map { $0.joined(separator: "|") }
  }

  private static func states(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT DISTINCT "column" || ' ' || state FROM salesforce._columns \
      WHERE state <> 'complete' ORDER BY 1
      """)
  }

  /// A rebuild from the history changes no row.
  private static func checkRebuild(
    _ database: TestDatabase, _ run: SinkRun, _ mode: PostgresSinkConfiguration.Mode
  ) throws {
    guard mode == .both else { return }
    let tables = try TableCatalog(database.configuration { $0.reads = .init() })
      .storedTables(over: run.eye)
    let refold = Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
    let before = try run.eye.rows("SELECT * FROM salesforce.opportunity ORDER BY id")
    #expect(try refold.refoldAll(over: run.eye).changed == 0)
    #expect(try run.eye.rows("SELECT * FROM salesforce.opportunity ORDER BY id") == before)
  }

  @Test("The statements for views of an earlier column come when the new column is complete")
  func statementsWhenComplete() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    let layout = SinkRun.layout(.string, schemaID: "schema-2")
    try Self.pass(
      Self.reads(["a": Self.whole("a"), "first": Self.whole("first")], SinkRun.layout()), to: run)
    try run.eye.execute(
      """
      CREATE MATERIALIZED VIEW public.stored AS SELECT id, amount FROM salesforce.opportunity_live
      """)
    func found() throws -> [String] {
      try TableCatalog(
        database.configuration(),
        feeder: TableFeeder(pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
      ).survey(over: run.eye).map(\.message)
    }
    try run.write(["b"], layout: layout) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    let warnings = run.notices.filter { $0.contains("view public.stored lacks new values") }
    for message in try warnings + found() {
      #expect(message.contains("is still being filled"), "\(message)")
      #expect(!message.contains("CREATE"), "\(message)")
    }
    #expect(try warnings.count == 1 && found().count == 1)
    var values: [String: [Int: TestCell]] = [:]
    for (id, amount) in [("a", "1"), ("b", "2.5"), ("first", "3")] {
      values[id] = Self.whole(id)
      values[id]?[SinkRun.amount] = .text(amount)
    }
    try Self.pass(Self.reads(values, layout), number: 2, to: run)
    #expect(try Self.states(run).allSatisfy { !$0.contains("filling") })
    let message = try #require(found().first)
    #expect(!message.contains("filled"), "\(message)")
    let start = try #require(message.firstRange(of: "run as the owner of the view: ")).upperBound
    let end = try #require(message.firstRange(of: "; a value that cannot be converted")).lowerBound
    try run.eye.execute(String(message[start..<end]))
    #expect(
      try run.eye.rows("SELECT id, amount FROM stored WHERE id IN ('a', 'b') ORDER BY id")
        == [["a", "1"], ["b", "2.5"]])
    #expect(try found() == [])
  }

  @Test("A read with the row's stamp brings the values that the row lacks", arguments: modes)
  func equalStamp(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    try Self.pass(
      Self.reads(["a": Self.whole("a"), "b": Self.whole("b")], SinkRun.layout()), to: run)
    var (first, second) = (Self.whole("a"), Self.whole("b"))
    first[Self.note] = .text("note of a")
    second[Self.note] = .null
    try Self.pass(Self.reads(["a": first, "b": second], Self.wider), number: 2, to: run)
    #expect(try Self.notes(run).prefix(2).map { $0.prefix(11) } == ["a|note of a", "b|-|SNAPSHO"])
    #expect(try Self.states(run) == [])
    if mode == .both {
      // What changed nothing is not stored twice.
      #expect(
        try run.eye.column(
          "SELECT _record_id FROM salesforce.opportunity_history WHERE _kind = 'snapshot' ORDER BY 1"
        )
          == ["a", "a", "b"])
    }
    try Self.checkRebuild(database, run, mode)
    // Without a pass, as records that are requested by their IDs.
    first[Self.note] = .text("formula")
    try Self.write(Self.reads(["a": first], Self.wider), to: run)
    try run.commit()
    #expect(try Self.notes(run)[0].hasPrefix("a|formula|"))
    try Self.checkRebuild(database, run, mode)
  }

  @Test(
    "A column that an earlier schema lacks is filling after events of that schema",
    arguments: modes, [true, false])
  func earlierSchema(mode: PostgresSinkConfiguration.Mode, isKnown: Bool) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    let earlier = SinkRun.layout(schemaID: isKnown ? "schema-1" : "schema-0")
    var values = Self.whole("a")
    values[Self.note] = .text("note of a")
    try Self.pass(Self.reads(["a": values], Self.wider), to: run)
    #expect(try Self.states(run) == [])
    // Now the org has the wider schema again.
    run.sink.noteCurrent(Self.wider)
    try run.write(["a"], layout: earlier, type: "UNDELETE")
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    try Self.pass(Self.reads(["a": values], Self.wider), number: 2, to: run)
    #expect(try Self.states(run) == [])
  }

  /// An update of record `a`.
  private static func update(
    _ slot: Int, _ value: String, _ layout: RecordLayout, of run: SinkRun
  ) throws {
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    batch.addChange(
      "UPDATE", "a", ordinal: run.ordinal,
      metadata: [MetadataSlot.changedFields: .slots([slot])], [slot: .text(value)])
    run.advance()
    try run.sink.take(batch)
  }

  @Test("Events keep their order when a field goes and comes back among them", arguments: modes)
  func orderAcrossSchemas(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    try run.write(["a"], layout: Self.wider)
    try run.commit()
    // `Note__c` is deleted: a new schema without it, and no new column.
    let narrow = SinkRun.layout(schemaID: "schema-3")
    for number in 0..<3 {
      try Self.update(SinkRun.name, "\(number)", Self.wider, of: run)
      try Self.update(SinkRun.parent, "\(number)", narrow, of: run)
    }
    try Self.update(Self.note, "note", Self.wider, of: run)
    try run.commit()
    let rows = try run.eye.rows(
      "SELECT name, parent, note__c, _stale FROM salesforce.opportunity WHERE id = 'a'")
    #expect(rows == [["2", "2", "note", "f"]])
  }

  @Test("A field that is restored within a run has a filling column", arguments: modes)
  func restored(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    var values = Self.whole("a")
    values[Self.note] = .text("note of a")
    try Self.pass(Self.reads(["a": values], Self.wider), to: run)
    #expect(try Self.states(run) == [])
    let narrow = SinkRun.layout(schemaID: "schema-3")
    try Self.update(SinkRun.name, "1", narrow, of: run)
    try run.write(["meanwhile"], layout: narrow)
    try run.commit()
    #expect(try Self.states(run) == ["note__c gone since"])
    for (number, layout) in [Self.wider, narrow, Self.wider].enumerated() {
      try Self.update(SinkRun.name, "\(number)", layout, of: run)
    }
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    #expect(
      try run.sink.noteAccess(["Note__c": .readable], of: "Opportunity").map(\.field)
        == ["Note__c"])
    let reads = Self.reads(
      ["a": [Self.note: .text("note of a")], "meanwhile": [Self.note: .text("later")]],
      Self.wider, type: "SNAPSHOT_FIELDS")
    try Self.pass(reads, part: "fields:1", to: run)
    #expect(try Self.states(run) == [])
    let rows = try run.eye.rows(
      "SELECT id, name, note__c FROM salesforce.opportunity ORDER BY id")
    #expect(
      rows == [
        ["a", "2", "note of a"], ["first", "first", "-"], ["meanwhile", "meanwhile", "later"],
      ])
  }

  @Test(
    "A new column is filling until its values are read, which events after the read outlast",
    arguments: modes)
  func filling(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    let old = ["a", "b", "c", "d"].reduce(into: [:]) { $0[$1] = Self.whole($1) }
    try Self.pass(Self.reads(old, SinkRun.layout()), to: run)
    // An event of the wider schema.
    try run.write(["new"], layout: Self.wider) { _ in [Self.note: .text("by event")] }
    try run.commit()
    try run.write(["d"], layout: Self.wider, type: "DELETE")
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    let filling = try run.sink.noteAccess(["Note__c": .readable], of: "Opportunity")
    #expect(filling == [FillingColumn(field: "Note__c", isOfObject: true)])
    let values = ["a", "b", "c", "d", "new", "unknown"].reduce(into: [:]) {
      $0[$1] = [Self.note: TestCell.text("read of \($1)")]
    }
    try Self.pass(
      Self.reads(values, Self.wider, type: "SNAPSHOT_FIELDS"), part: "fields:1", to: run
    ) {
      let batch = RecordBatch(layout: Self.wider)
      batch.epoch = 1
      for (id, slot, value) in [
        ("b", Self.note, TestCell.text("event of b")), ("c", SinkRun.name, .text("c2")),
      ] {
        batch.addChange(
          "UPDATE", id, ordinal: run.ordinal,
          metadata: [MetadataSlot.changedFields: .slots([slot])],
          [slot: value])
        run.advance()
      }
      try run.sink.take(batch)
      try run.commit()
    }
    #expect(
      try Self.notes(run) == [
        "a|read of a|SNAPSHOT:1:a:1771300000000|SNAPSHOT", "b|event of b|event-3|UPDATE",
        "c|read of c|event-4|UPDATE", "d|-|event-2|DELETE", "first|-|event-0|CREATE",
        "new|read of new|event-1|CREATE",
      ])
    #expect(
      try run.eye.column("SELECT DISTINCT _partial::text FROM salesforce.opportunity") == ["false"])
    #expect(try Self.states(run) == [])
    #expect(
      try run.eye.column("SELECT entity FROM salesforce._etl_snapshot ORDER BY 1") == [
        "Opportunity"
      ])
    try Self.checkRebuild(database, run, mode)
  }

  @Test("Two columns that are filled one after the other both have their values in the history")
  func filledTwice() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    let (more, code) = (MetadataSlot.count + 4, Column("Code__c", 4, .string))
    try Self.pass(Self.reads(["a": Self.whole("a")], SinkRun.layout()), to: run)
    let note = Column("Note__c", 3, .string, salesforceType: "Data:Text")
    let wider = SinkRun.layout(schemaID: "schema-2", [note])
    let widest = SinkRun.layout(schemaID: "schema-3", [note, code])
    // The record itself does not change, so its stamp stays. The reads of both passes have one event
    // ID, as passes of earlier versions did.
    for (layout, part, slot) in [(wider, "fields:1", Self.note), (widest, "fields:2", more)] {
      try run.write(["of \(part)"], layout: layout)
      try run.commit()
      _ = try run.sink.noteAccess(
        ["Note__c": .readable, "Code__c": .readable], of: "Opportunity")
      let reads = Self.reads(["a": [slot: .text(part)]], layout, type: "SNAPSHOT_FIELDS")
      try Self.pass(reads, part: part, to: run)
    }
    #expect(try Self.states(run) == [])
    let filled = [["fields:1", "fields:2"]]
    for source in ["opportunity", "opportunity_at(now())", "opportunity_versions"] {
      let isNow = source.hasSuffix("versions") ? " AND _is_current" : ""
      #expect(
        try run.eye.rows(
          "SELECT note__c, code__c FROM salesforce.\(source) WHERE id = 'a'\(isNow)") == filled,
        "\(source)")
    }
    #expect(
      try run.eye.rows(
        """
        SELECT note__c, code__c FROM salesforce.opportunity_history \
        WHERE _record_id = 'a' AND _change_type = 'SNAPSHOT_FIELDS' ORDER BY _read_at
        """) == [["fields:1", "-"], ["-", "fields:2"]])
    try Self.checkRebuild(database, run, .both)
  }

  @Test("A field that was deleted while all records were read keeps its values in a rebuild")
  func deletedMeanwhile() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    var values = Self.whole("a")
    values[Self.note] = .text("note of a")
    try Self.pass(Self.reads(["a": values], Self.wider), to: run)
    let narrow = SinkRun.layout(schemaID: "schema-3")
    try run.write(["b"], layout: narrow)
    try run.commit()
    #expect(try Self.states(run) == ["note__c gone since"])
    // The record has changed, and the read has no such field.
    try Self.pass(
      Self.reads(["a": Self.whole("a2")], narrow, stamp: Self.stamp + 5000), number: 2, to: run)
    #expect(try Self.notes(run)[0].hasPrefix("a|note of a|"))
    // The field comes back with its values.
    try run.write(["c"], layout: Self.wider)
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    _ = try run.sink.noteAccess(["Note__c": .readable], of: "Opportunity")
    let reads = Self.reads(
      ["a": [Self.note: .text("note of a")]], Self.wider, type: "SNAPSHOT_FIELDS",
      stamp: Self.stamp + 5000)
    try Self.pass(reads, part: "fields:1", to: run)
    #expect(try Self.states(run) == [])
    #expect(try Self.notes(run)[0].hasPrefix("a|note of a|"))
    // The row did not change, but without the read a rebuild would not know the value.
    #expect(
      try run.eye.column(
        """
        SELECT note__c FROM salesforce.opportunity_history \
        WHERE _record_id = 'a' AND _change_type = 'SNAPSHOT_FIELDS'
        """) == ["note of a"])
    try Self.checkRebuild(database, run, .both)
    #expect(
      try run.eye.column("SELECT note__c FROM salesforce.opportunity_at(now()) WHERE id = 'a'")
        == ["note of a"])
  }

  @Test("A pass over columns continues where a killed run left it")
  func resumed() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .current).begin()
    try Self.pass(Self.reads(["a": Self.whole("a")], SinkRun.layout()), to: run)
    var pass = ReadPass(entity: "Opportunity", part: "fields:1", number: 1)
    pass.state = .reading
    pass.job = "750"
    pass.rowCount = 1
    try Self.write(
      Self.reads(["a": [Self.note: .text("x")]], Self.wider, type: "SNAPSHOT_FIELDS"), pass, to: run
    )
    try run.commit()
    run.sink.close()
    let next = try Self.run(database, .current, ordinal: run.ordinal)
    try next.sink.open()
    #expect(try next.sink.noteAccess([:], of: "Opportunity").map(\.field) == ["Note__c"])
    let known = next.sink.pass(over: pass.key)
    #expect(known?.job == "750" && known?.rowCount == 1 && known?.entity == "Opportunity")
    #expect(next.sink.pass(over: "Opportunity")?.state == .complete)
    pass.state = .complete
    try Self.write(RecordBatch(layout: Self.wider), pass, to: next)
    try next.commit()
    #expect(try Self.states(next) == [])
    #expect(try Self.notes(next)[0].hasPrefix("a|x|"))
    #expect(
      try next.eye.column("SELECT to_regclass('salesforce._etl_kept_opportunity')::text") == ["-"])
  }

  @Test("A hidden field makes no row partial, and its column is filled once it can be seen")
  func hidden() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both)
    try run.sink.open(creating: [:])
    // As at the beginning of a first run, before there are tables.
    let access: [String: FieldAccess] = ["Note__c": .hidden, "Name": .readable]
    #expect(try run.sink.noteAccess(access, of: "Opportunity") == [])
    try Self.pass(Self.reads(["a": Self.whole("a")], Self.wider), to: run)
    #expect(try Self.states(run) == ["note__c hidden"])
    #expect(
      try run.eye.rows("SELECT id, _partial FROM salesforce.opportunity") == [["a", "f"]])
    #expect(
      try run.eye.rows(
        "SELECT columns_filling, columns_hidden FROM salesforce._freshness ORDER BY table_name"
      )
      .last?.last == "{note__c}")
    // An event for a record that was never read is another matter.
    try run.write(["b"], layout: Self.wider, type: "UPDATE")
    try run.commit()
    #expect(
      try run.eye.rows("SELECT id, _partial FROM salesforce.opportunity ORDER BY id") == [
        ["a", "f"], ["b", "t"],
      ])
    #expect(
      try run.sink.noteAccess(["Note__c": .calculated], of: "Opportunity").map(\.field)
        == ["Note__c"])
    try Self.pass(
      Self.reads(["a": [Self.note: .text("seen")]], Self.wider, type: "SNAPSHOT_FIELDS"),
      part: "fields:2", to: run)
    #expect(try Self.notes(run)[0].hasPrefix("a|seen|"))
    #expect(try Self.states(run) == ["note__c without events"])
    _ = try run.sink.noteAccess(["Note__c": .unreadable], of: "Opportunity")
    #expect(try Self.states(run) == ["note__c not readable"])
  }

  @Test("A field of another type gets a filling column, and its old column is gone")
  func converted() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    try Self.pass(Self.reads(["a": Self.whole("a")], SinkRun.layout()), to: run)
    let converted = SinkRun.layout(.string, schemaID: "schema-2")
    try run.write(["new"], layout: converted)
    try run.commit()
    #expect(try Self.states(run) == ["amount filling", "amount__float8 gone since"])
    try Self.pass(
      Self.reads(["a": [SinkRun.amount: .text("1")]], converted, type: "SNAPSHOT_FIELDS"),
      part: "fields:1", to: run)
    #expect(
      try run.eye.rows("SELECT amount, amount__float8 FROM salesforce.opportunity WHERE id = 'a'")
        == [["1", "1"]])
    try Self.checkRebuild(database, run, .both)
    // A read of all fields says nothing about the old column.
    var record = Self.whole("a")
    record[SinkRun.amount] = .text("2")
    try Self.pass(Self.reads(["a": record], converted), to: run)
    #expect(
      try run.eye.rows("SELECT amount, amount__float8 FROM salesforce.opportunity WHERE id = 'a'")
        == [["2", "1"]])
    try Self.checkRebuild(database, run, .both)
    // The number comes back.
    try run.write(["newer"], layout: SinkRun.layout(schemaID: "schema-3"))
    try run.commit()
    #expect(try Self.states(run) == ["amount filling", "amount__text gone since"])
  }

  @Test("The column with the field's name has the type of today, whatever the stream still brings")
  func namesFollowToday() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    let converted = SinkRun.layout(.string, schemaID: "schema-2")
    try run.write(["b"], layout: converted) { _ in [SinkRun.amount: .text("2")] }
    try run.commit()
    #expect(try Self.states(run) == ["amount filling", "amount__float8 gone since"])
    // The org has the first schema again.
    run.sink.noteCurrent(SinkRun.layout())
    try Self.write(RecordBatch(layout: SinkRun.layout()), to: run)
    try run.write(["c"], layout: converted) { _ in [SinkRun.amount: .text("3")] }
    try run.commit()
    #expect(
      try run.eye.rows(
        "SELECT id, pg_typeof(amount), amount, amount__text FROM salesforce.opportunity "
          + "WHERE id <> 'first' ORDER BY id")
        == [["b", "double precision", "-", "2"], ["c", "double precision", "-", "3"]])
    #expect(try Self.states(run) == ["amount filling", "amount__text gone since"])
  }

  @Test("A field that the org has is not gone, although an earlier schema lacks it")
  func live() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    run.sink.noteCurrent(Self.wider)
    try Self.write(RecordBatch(layout: Self.wider), to: run)
    try run.write(["old"], layout: SinkRun.layout(schemaID: "schema-0"))
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    // It is deleted, and made again.
    let narrow = SinkRun.layout(schemaID: "schema-3")
    run.sink.noteCurrent(narrow)
    try Self.write(RecordBatch(layout: narrow), to: run)
    #expect(try Self.states(run) == ["note__c gone since"])
    run.sink.noteCurrent(Self.wider)
    try Self.write(RecordBatch(layout: Self.wider), to: run)
    #expect(try Self.states(run) == ["note__c filling"])
  }

  @Test("A pass completes only the columns that got values", arguments: modes)
  func completesOnlyItsColumns(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    try run.write(["new"], layout: Self.wider)
    try run.commit()
    #expect(try Self.states(run) == ["note__c filling"])
    // A pass in the schema from before the field.
    try Self.pass(Self.reads(["a": Self.whole("a")], SinkRun.layout()), to: run)
    #expect(try Self.states(run) == ["note__c filling"])
    var record = Self.whole("a")
    record[Self.note] = .text("x")
    try Self.pass(Self.reads(["a": record], Self.wider), number: 2, to: run)
    #expect(try Self.states(run) == [])
  }

  @Test("Bookkeeping of an earlier version gets states, and columns that were added are filling")
  func earlier() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, .both).begin()
    try Self.pass(Self.reads(["a": Self.whole("a")], SinkRun.layout()), to: run)
    try run.write(["new"], layout: Self.wider)
    try run.commit()
    run.sink.close()
    try run.eye.execute(
      """
      DROP VIEW salesforce._columns;
      ALTER TABLE salesforce._etl_column DROP COLUMN state, DROP COLUMN since;
      UPDATE salesforce.opportunity SET _partial = true
      """)
    let next = try Self.run(database, .both, ordinal: run.ordinal)
    try next.sink.open()
    try next.write(["newer"], layout: Self.wider)
    try next.commit()
    #expect(try Self.states(next) == ["note__c filling"])
    #expect(
      try next.eye.column("SELECT id FROM salesforce.opportunity WHERE NOT _partial ORDER BY id")
        == ["a", "newer"])
  }

  @Test("A creation of an earlier schema keeps what was read soon after it", arguments: Self.modes)
  func earlierCreation(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode).begin()
    var values = Self.whole("a")
    values[Self.note] = .text("read")
    try Self.write(Self.reads(["a": values], Self.wider), to: run)
    try run.commit()
    // The event comes after the place in the stream at which the record was read.
    run.advance()
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.addChange(
      "CREATE", "a", ordinal: run.ordinal, commitTimestamp: Self.stamp + 1000, Self.whole("a"))
    run.advance()
    try run.sink.take(batch)
    try run.commit()
    let note = "SELECT note__c FROM salesforce.opportunity"
    #expect(try run.eye.column("\(note) WHERE id = 'a'") == ["read"])
    try Self.checkRebuild(database, run, mode)
    guard mode == .both else { return }
    #expect(try run.eye.column("\(note)_at(now(), 'a')") == ["read"])
  }
}
