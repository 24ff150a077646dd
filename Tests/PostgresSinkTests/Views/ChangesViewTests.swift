import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Views of changes", .enabled(if: PostgresCluster.isAvailable)) struct ChangesViewTests {
  private static let schema = SQLIdentifier.quoted(SampleTables.schema)
  private static let changes = "\(schema).thing_changes"

  /// The tables with their view.
  private static func tables() async throws -> SampleTables {
    let tables = try await SampleTables.complete(width: SampleTables.allWidth)
    _ = try Self.update(tables)
    return tables
  }

  private static func update(_ tables: SampleTables) throws -> ReportingViews.Outcome {
    try ReportingViews(schema: SampleTables.schema)
      .updateChanges(of: tables.current, history: tables.history, over: tables.connection)
  }

  private static func rows(_ tables: SampleTables) throws -> [String] {
    try tables.rows(
      """
      SELECT id, field, old_value, new_value, extract(epoch FROM changed_at)::int, changed_by, \
      changed_by_name, change_type, transaction_key, old_is_known, new_is_known \
      FROM \(Self.changes) ORDER BY changed_at, id, field
      """)
  }

  @Test("A row for each changed field, with the values before and after, and one for other events")
  func example() async throws {
    let tables = try await Self.tables()
    #expect(try Self.update(tables) == .unchanged)
    let events: [SampleEvent] = [
      SampleEvent(
        change: .update, recordID: "2", ordinal: 0, time: 90, values: ["name": .text("?")]),
      SampleEvent(
        change: .create, recordID: "1", ordinal: 1, time: 100,
        values: ["name": .text("a"), "order": .integer(1)]),
      SampleEvent(
        change: .update, recordID: "1", ordinal: 2, time: 200,
        values: ["name": .text("b"), "tags": .texts(["x", "y"])]),
      SampleEvent(
        change: .update, recordID: "1", ordinal: 3, time: 300,
        values: ["name": .null, "order": .integer(2)]),
      SampleEvent(change: .gapUpdate, recordID: "1", ordinal: 4, time: 400),
      SampleEvent(
        change: .update, recordID: "1", ordinal: 5, time: 500, values: ["name": .text("c")]),
      SampleEvent(change: .delete, recordID: "1", ordinal: 6, time: 600),
    ]
    for event in events { try tables.insert(event) }
    #expect(
      try Self.rows(tables) == [
        "2|name|-|?|90|user-0|-|UPDATE|t0|f|t",
        "1|-|-|-|100|user-1|-|CREATE|t1|-|-",
        "1|name|a|b|200|user-2|-|UPDATE|t2|t|t",
        "1|tags|-|x;y|200|user-2|-|UPDATE|t2|t|t",
        "1|name|b|-|300|user-0|-|UPDATE|t3|t|t",
        "1|order|1|2|300|user-0|-|UPDATE|t3|t|t",
        "1|-|-|-|400|user-1|-|GAP_UPDATE|t4|-|-",
        "1|name|-|c|500|user-2|-|UPDATE|t5|f|t",
        "1|-|-|-|600|user-0|-|DELETE|t6|-|-",
      ])
  }

  @Test("Changes from before the first event of a record come from the field history, each once")
  func fieldHistory() async throws {
    var tables = try await Self.tables()
    tables.history.dataColumns[2].salesforceType = "ForeignKey:EntityId"
    let columns = [
      ("ThingId", "text"), ("Field", "text"), ("OldValue", "text"), ("NewValue", "text"),
      ("CreatedDate", "timestamp with time zone"), ("CreatedById", "text"), ("DataType", "text"),
    ]
    let definitions = columns.map { "\($0.0.lowercased()) \($0.1)" }
    let registered = columns.map { "('things', '\($0.0.lowercased())', '\($0.0)', '\($0.1)')" }
    try tables.connection.execute(
      """
      CREATE TABLE \(Self.schema).things (\(definitions.joined(separator: ", "))); \
      INSERT INTO \(Self.schema)._etl_table VALUES ('things', 'ThingHistory', 'current'); \
      INSERT INTO \(Self.schema)._etl_column (table_name, column_name, path, pg_type) \
      VALUES \(registered.joined(separator: ", "))
      """)
    // The columns are the same as without it.
    #expect(try Self.update(tables) == .unchanged)
    let events: [SampleEvent] = [
      SampleEvent(
        change: .create, recordID: "3", ordinal: 1, time: 500, values: ["name": .text("b")]),
      SampleEvent(
        change: .update, recordID: "1", ordinal: 2, time: 1000, values: ["name": .text("c")]),
    ]
    for event in events { try tables.insert(event) }
    let changes: [(String, String, String?, String?, Int, String)] = [
      ("1", "created", nil, nil, 100, "Text"), ("1", "Name", "a", "b", 900, "Text"),
      // That of the event, by another clock, and another field at that time.
      ("1", "Name", "b", "c", 997, "Text"), ("1", "Order", "1.0", "1.25E1", 998, "Double"),
      ("1", "Name", "c", "d", 1010, "Text"),
      // Names and IDs of a reference, texts that are too long, and a field that events lack.
      ("2", "Description", "Ann", "Bob", 950, "Text"),
      ("2", "Description", "005a", "005b", 950, "EntityId"),
      ("2", "Tags", nil, nil, 960, "Text"), ("2", "locked", "false", "true", 970, "Boolean"),
      ("2", "Amount", "1e999", "2026-02-17T04:03:15.000+0000", 980, "Text"),
      // Before a creation there is nothing.
      ("3", "created", nil, nil, 480, "Text"), ("3", "Name", "a", "b", 490, "Text"),
    ]
    for (record, field, old, new, time, type) in changes {
      try tables.connection.query(
        "INSERT INTO \(Self.schema).things VALUES ($1, $2, $3, $4, to_timestamp(\(time)), 'user-9', $5)",
        [record, field, old, new, type])
    }
    let found = try tables.rows(
      """
      SELECT extract(epoch FROM changed_at)::int, id, field, old_value, new_value, changed_by, \
      change_type, old_is_known, new_is_known, source \
      FROM \(Self.changes) ORDER BY changed_at, id, field
      """)
    #expect(
      found == [
        "100|1|-|-|-|user-9|CREATE|-|-|field history",
        "500|3|-|-|-|user-1|CREATE|-|-|event",
        "900|1|name|a|b|user-9|UPDATE|t|t|field history",
        "950|2|description|005a|005b|user-9|UPDATE|t|t|field history",
        "960|2|tags|-|-|user-9|UPDATE|f|f|field history",
        "970|2|locked|false|true|user-9|UPDATE|t|t|field history",
        "980|2|amount \"net\"|1e999|2026-02-17T04:03:15.000Z|user-9|UPDATE|t|t|field history",
        "998|1|order|1|12.5|user-9|UPDATE|t|t|field history",
        "1000|1|name|-|c|user-2|UPDATE|f|t|event",
      ])
  }

  @Test(
    "A long text that came as a diff is not known, neither as the new value nor as the next old one"
  )
  func diffs() async throws {
    let tables = try await Self.tables()
    for (ordinal, value) in [
      SampleEvent.Value.text("a"), .diff("@@"), .text("b"), .text("c"),
    ].enumerated() {
      try tables.insert(
        SampleEvent(
          change: .update, recordID: "1", ordinal: Int64(ordinal), time: Int64(ordinal) * 100,
          values: ["description": value]))
    }
    #expect(
      try tables.rows("SELECT old_value, new_value FROM \(Self.changes) ORDER BY changed_at") == [
        "-|a", "a|-", "-|b", "b|c",
      ])
  }

  @Test(
    "A column that has another name now is found by the earlier one, and one of another type too")
  func renamedColumns() async throws {
    var tables = try await Self.tables()
    func change(_ ordinal: Int64, _ values: [String: SampleEvent.Value], changed: [String]) throws {
      try tables.insert(
        SampleEvent(
          change: .update, recordID: "1", ordinal: ordinal, time: ordinal * 100, values: values),
        changed: changed)
    }
    try change(1, ["name": .text("a"), "order": .integer(1)], changed: ["name", "order"])
    try tables.connection.execute(
      """
      ALTER TABLE \(tables.history.qualifiedName) RENAME COLUMN name TO title; \
      ALTER TABLE \(tables.history.qualifiedName) RENAME COLUMN "order" TO order__int4; \
      ALTER TABLE \(tables.history.qualifiedName) ADD COLUMN "order" text; \
      INSERT INTO \(Self.schema)._etl_journal (table_name, action, detail, schema_id) VALUES \
      ('thing_history', 'rename_column', 'name to title', 's'), \
      ('thing_history', 'rename_column', 'order to order__int4', 's')
      """)
    tables.history.dataColumns[0].name = "title"
    tables.history.dataColumns[1].name = "order__int4"
    tables.history.dataColumns.append(TableColumn(name: "order", type: .text, path: "Order"))
    tables.current.dataColumns = tables.history.dataColumns
    #expect(try Self.update(tables) == .unchanged)
    try change(2, ["title": .text("b"), "order": .text("two")], changed: ["title", "order"])
    #expect(
      try tables.rows(
        "SELECT field, old_value, new_value, old_is_known FROM \(Self.changes) ORDER BY changed_at, 1"
      )
        == ["order|-|1|f", "title|-|a|f", "order|1|two|t", "title|a|b|t"])
  }

  @Test("Names of users appear once there is a table with them")
  func userNames() async throws {
    let tables = try await Self.tables()
    try tables.insert(
      SampleEvent(change: .create, recordID: "1", ordinal: 1, time: 100))
    try tables.connection.execute(
      """
      CREATE TABLE \(Self.schema)."user" (id text PRIMARY KEY, first text, last text); \
      INSERT INTO \(Self.schema)."user" VALUES ('user-1', 'Ada', 'Lovelace'); \
      INSERT INTO \(Self.schema)._etl_table VALUES ('user', 'User', 'current'); \
      INSERT INTO \(Self.schema)._etl_column (table_name, column_name, ordinal, path) VALUES \
      ('user', 'last', 1, 'Name.LastName'), ('user', 'first', 2, 'Name.FirstName')
      """)
    #expect(try Self.update(tables) == .unchanged)
    #expect(try tables.rows("SELECT changed_by_name FROM \(Self.changes)") == ["Ada Lovelace"])
  }

  @Test(
    "If stages may leave out changes in between, no value before is known, and no state is certain")
  func selectedChanges() async throws {
    let tables = try await SampleTables.complete()
    let views = ReportingViews(schema: SampleTables.schema, selectsChanges: true)
    for (ordinal, name) in [(1, "a"), (2, "b")] as [(Int64, String)] {
      try tables.insert(
        SampleEvent(
          change: ordinal == 1 ? .create : .update, recordID: "1", ordinal: ordinal,
          time: 100 * ordinal, values: ["name": .text(name)]))
    }
    try tables.connection.begin()
    _ = try views.updateChanges(
      of: tables.current, history: tables.history, over: tables.connection)
    _ = try views.updateStates(of: tables.current, history: tables.history, over: tables.connection)
    try tables.connection.execute("COMMIT")
    #expect(
      try tables.rows(
        "SELECT field, old_value, old_is_known, new_value FROM \(Self.changes) ORDER BY 1")
        == ["name|-|f|b", "-|-|-|-"])
    #expect(
      try tables.rows(
        """
        SELECT name, _stale FROM \(SQLIdentifier.quoted(SampleTables.schema)).thing_versions \
        ORDER BY _valid_from
        """) == ["a|t", "b|t"])
  }

  @Test("A view of that name that somebody else made is kept")
  func foreignView() async throws {
    let tables = try await SampleTables(takesReads: true)
    // With the first column of the sink's own view.
    try tables.connection.execute("CREATE VIEW \(Self.changes) AS SELECT 'mine'::text AS id")
    #expect(try Self.update(tables) == .foreign)
    #expect(try tables.rows("SELECT id FROM \(Self.changes)") == ["mine"])
    try tables.connection.execute("DROP VIEW \(Self.changes)")
    #expect(try Self.update(tables) == .created)
    try tables.connection.execute(
      "DROP VIEW \(Self.changes); CREATE VIEW \(Self.changes) AS SELECT 1 AS mine")
    #expect(try Self.update(tables) == .foreign)
  }

  @Test("The value before the first event comes from a read, unless that may contain the event")
  func reads() async throws {
    let tables = try await Self.tables()
    for (record, stamp) in [("1", 50 as Int64), ("2", 98)] {
      try tables.insert(
        SampleRead(
          recordID: record, ordinal: 0, stamp: stamp, readAt: 99,
          values: ["name": .text("a"), "order": .integer(1), "description": .null]))
      try tables.insert(
        SampleEvent(
          change: .update, recordID: record, ordinal: 1, time: 100,
          values: ["name": .text("b"), "description": .text("d"), "tags": .null]))
    }
    #expect(
      try tables.rows(
        "SELECT id, field, old_value, old_is_known FROM \(Self.changes) ORDER BY id, field") == [
          "1|description|-|t", "1|name|a|t", "1|tags|-|f",
          "2|description|-|f", "2|name|-|f", "2|tags|-|f",
        ])
  }

  @Test("A value before is never wrong, whatever is lost or read in between", arguments: 1...30)
  func neverWrong(seed: UInt64) async throws {
    let tables = try await Self.tables()
    var org = SampleOrg(seed: seed, records: 1)
    for _ in 0..<40 { try org.step(into: tables, withDeletions: false) }
    let rows = try tables.rows(
      """
      SELECT substr(transaction_key, 2) || '|' || field, old_value, old_is_known FROM \(Self.changes) \
      WHERE field IS NOT NULL
      """)
    var known = 0
    for row in rows {
      let parts = row.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
      guard parts[3] == "t" else { continue }
      known += 1
      #expect(parts[2] == org.before["\(parts[0])|\(parts[1])"], "\(row)")
    }
    #expect(known * 3 > rows.count)
  }
}
