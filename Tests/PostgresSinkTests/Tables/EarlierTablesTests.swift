import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Tables and views of a database that an earlier version has made: they have percent and number
/// fields as `double precision`, and the program's own columns before the fields.
@Suite("Tables of an earlier version", .enabled(if: PostgresCluster.isAvailable))
struct EarlierTablesTests {
  /// The statements of version 0.1 for `SinkRun`'s fields and a percent field.
  private static let statements = """
    CREATE TABLE salesforce.opportunity_history (
      _epoch integer not null, _ordinal bigint not null, _topic text, _replay_id text,
      _event_id text, _schema_id text, _kind text, _entity text, _change_type text,
      _record_id text, _commit_timestamp timestamp with time zone, _commit_number bigint,
      _commit_user text, _transaction_key text, _sequence_number integer, _change_origin text,
      _changed_fields text[], _nulled_fields text[], _diff_fields text[],
      _loaded_at timestamp with time zone not null default now(),
      "name" text, "parent" text, "amount" double precision, "probability" double precision);
    CREATE INDEX ON salesforce.opportunity_history (_record_id, _event_id);
    CREATE TABLE salesforce.opportunity (
      id text primary key, _epoch integer not null, _ordinal bigint not null, _event_id text,
      _change_type text, _commit_timestamp timestamp with time zone, _commit_user text,
      _deleted_at timestamp with time zone, _stale boolean not null default false,
      _partial boolean not null default false, _stale_fields text[],
      _updated_at timestamp with time zone not null default now(),
      "name" text, "parent" text, "amount" double precision, "probability" double precision)
      WITH (fillfactor = 75);
    INSERT INTO salesforce._etl_table (table_name, entity, kind) VALUES
      ('opportunity_history', 'Opportunity', 'history'), ('opportunity', 'Opportunity', 'current');
    INSERT INTO salesforce._etl_column (table_name, column_name, ordinal, path, salesforce_type,
      pg_type, first_schema_id)
      SELECT t, c, o, initcap(c), s, p, 'schema-1'
      FROM unnest(ARRAY['opportunity_history', 'opportunity']) AS t,
      (VALUES ('name', 1, NULL, 'text'), ('parent', 2, NULL, 'text'),
        ('amount', 3, NULL, 'double precision'),
        ('probability', 4, 'Data:Percent', 'double precision')) AS v (c, o, s, p);
    INSERT INTO salesforce._etl_journal (table_name, action, detail, schema_id) VALUES
      ('opportunity_history', 'create_table', 'history of Opportunity', 'schema-1'),
      ('opportunity', 'create_table', 'current of Opportunity', 'schema-1'),
      ('opportunity_history', 'schema', 'first seen', 'schema-1'),
      ('opportunity', 'schema', 'first seen', 'schema-1');
    CREATE OR REPLACE VIEW "salesforce"."opportunity_live" AS SELECT "id", "_epoch", "_ordinal",
      "_event_id", "_change_type", "_commit_timestamp", "_commit_user", "_stale", "_partial",
      "_stale_fields", "_updated_at", "name", "parent", "amount", "probability"
      FROM "salesforce"."opportunity" WHERE _deleted_at IS NULL;
    """

  private static let percent = MetadataSlot.count + 3

  private static func layout(
    _ type: ColumnType = .double, schemaID: String = "schema-1", _ more: [Column] = []
  ) -> RecordLayout {
    SinkRun.layout(
      schemaID: schemaID,
      [
        Column(
          "Probability", 3, type, salesforceType: type == .double ? "Data:Percent" : "Data:Text")
      ] + more)
  }

  private func database() async throws -> TestDatabase {
    let database = try await TestDatabase()
    let connection = try database.connect()
    try TableCatalog(database.configuration()).prepare(over: connection)
    try connection.execute(Self.statements)
    return database
  }

  private func columns(_ table: String, _ connection: PostgresConnection) throws -> [String] {
    try connection.column(
      """
      SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute \
      WHERE attrelid = 'salesforce.\(table)'::regclass AND attnum > 0 AND NOT attisdropped \
      ORDER BY attnum
      """)
  }

  private func refold(
    _ database: TestDatabase, _ connection: PostgresConnection
  ) throws
    -> Refold.Counts
  {
    let tables = try TableCatalog(database.configuration()).storedTables(over: connection)
    return try Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
      .refoldAll(over: connection)
  }

  @Test("Tables of an earlier version are loaded unchanged under every contract")
  func unchanged() async throws {
    for contract in [PostgresSinkConfiguration.Contract.evolve, .freeze, .discard] {
      let database = try await self.database()
      let tables = ["opportunity", "opportunity_history", "opportunity_live"]
      let eye = try database.connect()
      let before = try tables.map { try self.columns($0, eye) }
      let configuration = database.configuration { $0.contract = contract }
      let plan = try TableCatalog.plan([Self.layout()], configuration)
      #expect(plan.refusals == [] && plan.discarded == [:])
      #expect(!plan.sql.contains("ALTER") && !plan.sql.contains("opportunity_live\" AS"))
      let run = try SinkRun(database) { $0.contract = contract }
      try run.sink.open(creating: [:])
      let values: [Double] = [0.1, 0.1 + 0.2, .infinity, .nan]
      for (index, value) in values.enumerated() {
        try run.write(["\(index)"], layout: Self.layout()) { _ in [Self.percent: .double(value)] }
      }
      try run.commit()
      let expected = [
        ["0", "0.1"], ["1", "0.30000000000000004"], ["2", "Infinity"], ["3", "NaN"],
      ]
      for query in [
        "SELECT id, probability FROM salesforce.opportunity_live ORDER BY id",
        "SELECT _record_id, probability FROM salesforce.opportunity_history ORDER BY 1",
      ] {
        #expect(try run.eye.rows(query) == expected)
      }
      #expect(try tables.map { try self.columns($0, eye) } == before)
      #expect(try self.refold(database, eye) == Refold.Counts(checked: 4, changed: 0))
      #expect(!run.notices.contains { $0.contains("opportunity") }, "\(run.notices)")
    }
  }

  @Test("New columns have the new types and come last, and views keep their rights and readers")
  func newColumns() async throws {
    let database = try await self.database()
    let run = try SinkRun(database)
    try run.eye.execute(
      """
      CREATE VIEW salesforce.mine AS SELECT id, probability FROM salesforce.opportunity_live;
      GRANT SELECT ON salesforce.opportunity_live TO PUBLIC
      """)
    let before = try self.columns("opportunity_live", run.eye)
    try run.sink.open(creating: [:])
    let wider = Self.layout(
      schemaID: "schema-2", [Column("Discount__c", 4, .double, salesforceType: "Data:Percent")])
    try run.write(["a"], layout: wider) { _ in
      [Self.percent: .double(7.5), Self.percent + 1: .double(0.07)]
    }
    try run.commit()
    for table in ["opportunity", "opportunity_history"] {
      #expect(try self.columns(table, run.eye).last == "discount__c numeric")
    }
    #expect(try self.columns("opportunity_live", run.eye) == before + ["discount__c numeric"])
    #expect(
      try run.eye.rows(
        "SELECT m.*, l.discount__c FROM salesforce.mine m JOIN salesforce.opportunity_live l USING (id)"
      )
        == [["a", "7.5", "0.07"]])
    #expect(
      try run.eye.column(
        "SELECT has_table_privilege('public', 'salesforce.opportunity_live', 'SELECT')")
        == ["t"])
    #expect(try self.refold(database, run.eye) == Refold.Counts(checked: 1, changed: 0))
  }

  @Test("A field that becomes text and then a number again gets its old column back")
  func changedType() async throws {
    let database = try await self.database()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    let number = Self.layout()
    let text = Self.layout(.string, schemaID: "schema-2")
    try run.write(["a"], layout: number) { _ in [Self.percent: .double(1.5)] }
    try run.write(["b"], layout: text) { _ in [Self.percent: .text("two")] }
    // Read again, the older schema finds its column under the later name.
    try run.write(["c"], layout: number) { _ in [Self.percent: .double(3.5)] }
    try run.commit()
    #expect(
      try run.eye.rows(
        "SELECT probability__float8, probability FROM salesforce.opportunity ORDER BY id")
        == [["1.5", "-"], ["-", "two"], ["3.5", "-"]])
    let again = Self.layout(schemaID: "schema-3")
    try run.write(["d"], layout: again) { _ in [Self.percent: .double(4.5)] }
    try run.commit()
    #expect(
      try run.eye.rows(
        "SELECT probability, probability__text FROM salesforce.opportunity ORDER BY id")
        == [["1.5", "-"], ["-", "two"], ["3.5", "-"], ["4.5", "-"]])
    #expect(
      try self.columns("opportunity", run.eye).filter { $0.hasPrefix("probability") }
        == ["probability double precision", "probability__text text"])
    #expect(try self.refold(database, run.eye) == Refold.Counts(checked: 4, changed: 0))
  }

  @Test("Columns that a user altered to numeric take the numbers as decimals")
  func altered() async throws {
    let database = try await self.database()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    try run.write(["a"], layout: Self.layout()) { _ in [Self.percent: .double(0.1 + 0.2)] }
    try run.commit()
    run.sink.close()
    // The page for those who report has these.
    try run.eye.execute(
      """
      DROP VIEW salesforce.opportunity_live;
      ALTER TABLE salesforce.opportunity
        ALTER COLUMN probability TYPE numeric USING probability::text::numeric;
      ALTER TABLE salesforce.opportunity_history
        ALTER COLUMN probability TYPE numeric USING probability::text::numeric
      """)
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    try next.write(["b"], layout: Self.layout()) { _ in [Self.percent: .double(12.345)] }
    try next.commit()
    #expect(
      try run.eye.rows(
        "SELECT id, probability, round(probability, 2) FROM salesforce.opportunity_live ORDER BY id"
      )
        == [["a", "0.30000000000000004", "0.30"], ["b", "12.345", "12.35"]])
    #expect(try self.refold(database, run.eye) == Refold.Counts(checked: 2, changed: 0))
  }

  @Test("A current table that was dropped is rebuilt with the columns of its history")
  func rebuilt() async throws {
    let database = try await self.database()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    try run.write(["a"], layout: Self.layout()) { _ in [Self.percent: .double(0.1)] }
    try run.commit()
    run.sink.close()
    try run.eye.execute("DROP TABLE salesforce.opportunity CASCADE")
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    try next.write(["b"], layout: Self.layout()) { _ in [Self.percent: .double(0.2)] }
    try next.commit()
    let fields = [
      "id text", "name text", "parent text", "amount double precision",
      "probability double precision", "_epoch integer",
    ]
    #expect(try self.columns("opportunity", run.eye).prefix(6) == fields[...])
    #expect(try self.columns("opportunity_live", run.eye).prefix(6) == fields[...])
    #expect(
      try run.eye.rows("SELECT id, probability FROM salesforce.opportunity_live ORDER BY id")
        == [["a", "0.1"], ["b", "0.2"]])
  }
}
