import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Fields that no event has", .enabled(if: PostgresCluster.isAvailable))
struct UnsentFieldTests {
  private static let stamp: Int64 = 1_771_300_000_000
  private static let score = MetadataSlot.count + 3
  private static let modes: [PostgresSinkConfiguration.Mode] = [.both, .current]

  private static func run(
    _ database: TestDatabase, _ mode: PostgresSinkConfiguration.Mode
  ) throws -> SinkRun {
    try SinkRun(database) {
      $0.mode = mode
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
  }

  private static func layout(
    _ type: ColumnType = .double, schemaID: String = "schema-1", isOnlyRead: Bool = true
  ) -> RecordLayout {
    var column = Column(
      "Score__c", 3, type, salesforceType: type == .double ? "Data:Double" : "Data:Text")
    column.isOnlyRead = isOnlyRead
    return SinkRun.layout(schemaID: schemaID, [column])
  }

  private static func row(_ name: String, _ score: TestCell? = nil) -> [Int: TestCell] {
    var row: [Int: TestCell] = [
      SinkRun.name: .text(name), SinkRun.parent: .null, SinkRun.amount: .double(1),
    ]
    row[Self.score] = score
    return row
  }

  /// Reads records in a pass from its beginning to its end.
  private static func read(
    _ rows: [String: [Int: TestCell]], _ layout: RecordLayout, _ number: Int, stamp: Int64,
    refresh fields: Set<String>? = nil, to run: SinkRun
  ) throws {
    run.sink.noteCurrent(layout)
    guard case .done = try run.sink.makeReady(for: layout) else { return }
    var pass = ReadPass(
      entity: "Opportunity", part: fields == nil ? nil : "refresh:blind", number: number)
    pass.fields = fields
    try run.sink.write(RecordBatch(layout: layout), pass: pass)
    try run.commit()
    let type = fields == nil ? "SNAPSHOT" : "SNAPSHOT_REFRESH"
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    batch.readAt = .now
    for (id, values) in rows.sorted(by: { $0.key < $1.key }) {
      batch.addChange(
        type, id, ordinal: 1, kind: .snapshot, eventID: "\(type):\(number):\(id):\(stamp)",
        commitTimestamp: stamp, values)
    }
    (pass.state, pass.job) = (.reading, "750")
    try run.sink.write(batch, pass: pass)
    try run.commit()
    pass.state = .complete
    try run.sink.write(RecordBatch(layout: layout), pass: pass)
    try run.commit()
  }

  private static func rows(_ run: SinkRun) throws -> [String] {
    try run.eye.rows(
      "SELECT id, name, score__c FROM salesforce.opportunity ORDER BY id"
    ).map { $0.joined(separator: "|") }
  }

  private static func columns(_ run: SinkRun) throws -> [String] {
    try run.eye.rows(
      """
      SELECT DISTINCT c.column_name, v.state, coalesce(c.first_schema_id, '-'), v.refreshed_at IS NOT NULL \
      FROM salesforce._etl_column AS c JOIN salesforce._columns AS v \
      ON (v.table_name, v."column") = (c.table_name, c.column_name) \
      WHERE c.path = 'Score__c' ORDER BY 1
      """
    ).map { $0.joined(separator: "|") }
  }

  /// A rebuild from the history changes no row.
  private static func checkRebuild(_ database: TestDatabase, _ run: SinkRun) throws {
    let configuration = database.configuration { $0.reads = .init() }
    for tables in try TableCatalog(configuration).storedTables(over: run.eye) {
      let refold = Refold(history: tables.history, current: tables.current, delete: .mark)
      #expect(try refold.refoldAll(over: run.eye).changed == 0)
    }
  }

  @Test("Events with all fields, and reads without the field, keep its values", arguments: modes)
  func kept(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode)
    try Self.read(
      ["a": Self.row("a", .double(5)), "first": Self.row("first", .null)], Self.layout(), 1,
      stamp: Self.stamp, to: run)
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    for type in ["DELETE", "UNDELETE", "UPDATE"] {
      try run.write(["a"], type: type)
      try run.commit()
    }
    try run.write(["new"])
    try run.commit()
    #expect(try Self.rows(run) == ["a|a|5", "first|first|-", "new|new|-"])
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    try Self.checkRebuild(database, run)
    // The pipeline no longer names the field.
    let later = Self.stamp + 3_600_000
    try Self.read(
      ["a": Self.row("b"), "first": Self.row("first")], SinkRun.layout(), 2, stamp: later, to: run)
    #expect(try Self.rows(run) == ["a|b|5", "first|first|-", "new|new|-"])
    try Self.checkRebuild(database, run)
    try Self.read(
      ["a": [Self.score: .null], "new": [Self.score: .double(7)]], Self.layout(), 3,
      stamp: later, refresh: ["Score__c"], to: run)
    #expect(try Self.rows(run) == ["a|b|-", "first|first|-", "new|new|7"])
    try Self.checkRebuild(database, run)
  }

  @Test("A column of a table with rows is filled by the refresh, and by nothing else")
  func filled() async throws {
    let run = try Self.run(try await TestDatabase(), .both)
    try Self.read(["first": Self.row("first")], SinkRun.layout(), 1, stamp: Self.stamp, to: run)
    run.sink.noteCurrent(Self.layout())
    _ = try run.sink.makeReady(for: Self.layout())
    #expect(try Self.columns(run) == ["score__c|filling|-|f"])
    // No pass of its own has to bring it.
    #expect(try run.sink.noteAccess(["Score__c": .readable], of: "Opportunity") == [])
    try Self.read(
      ["first": [Self.score: .double(2)]], Self.layout(), 1, stamp: Self.stamp,
      refresh: ["Score__c"], to: run)
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    #expect(try Self.rows(run) == ["first|first|2"])
    // Readable fields are complete only if events have them.
    _ = try run.sink.noteAccess(["Score__c": .readable], of: "Opportunity")
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    _ = try run.sink.noteAccess(["Score__c": .hidden], of: "Opportunity")
    #expect(try Self.columns(run) == ["score__c|hidden|-|t"])
    #expect(try run.sink.noteAccess(["Score__c": .calculated], of: "Opportunity") == [])
    #expect(try Self.columns(run) == ["score__c|filling|-|t"])
  }

  @Test("A field that events begin to have keeps its column, also when they no longer have it")
  func sent() async throws {
    let run = try Self.run(try await TestDatabase(), .both)
    try Self.read(
      ["a": Self.row("a", .double(5))], Self.layout(), 1, stamp: Self.stamp, to: run)
    let sent = Self.layout(schemaID: "schema-2", isOnlyRead: false)
    run.sink.noteRecent(sent)
    try run.write(["b"], layout: sent) { _ in [Self.score: .double(6)] }
    try run.commit()
    #expect(try Self.columns(run) == ["score__c|without events|schema-2|t"])
    #expect(try Self.rows(run).prefix(2) == ["a|a|5", "b|b|6"])
    // A run that began before still reads it as one that no event has.
    _ = try run.sink.makeReady(for: Self.layout())
    #expect(try Self.columns(run) == ["score__c|without events|schema-2|t"])
    let narrow = SinkRun.layout(schemaID: "schema-3")
    run.sink.noteRecent(narrow)
    try run.write(["c"], layout: narrow)
    try run.commit()
    #expect(try Self.columns(run) == ["score__c|gone since|schema-2|t"])
    let unsent = Self.layout(schemaID: "schema-3")
    try Self.read(
      ["c": [Self.score: .double(8)]], unsent, 1, stamp: Self.stamp, refresh: ["Score__c"],
      to: run)
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    try run.write(["d"], layout: narrow)
    try run.commit()
    #expect(try Self.columns(run) == ["score__c|without events|-|t"])
    #expect(try Self.rows(run).prefix(4) == ["a|a|5", "b|b|6", "c|c|8", "d|d|-"])
  }

  @Test("A field with another type gets a column of that type; the old one keeps its values")
  func retyped() async throws {
    let run = try Self.run(try await TestDatabase(), .both)
    try Self.read(
      ["a": Self.row("a", .double(5))], Self.layout(), 1, stamp: Self.stamp, to: run)
    try Self.read(
      ["a": Self.row("a", .text("five"))], Self.layout(.string), 2,
      stamp: Self.stamp + 3_600_000, to: run)
    #expect(
      try Self.columns(run).map { $0.prefix(30) } == [
        "score__c|without events|-|t", "score__c__numeric|gone since|-",
      ])
    let stored = try run.eye.rows(
      "SELECT score__c, score__c__numeric FROM salesforce.opportunity_history WHERE _kind = 'snapshot' "
        + "ORDER BY _system_modstamp")
    #expect(stored == [["-", "5"], ["five", "-"]])
  }
}
