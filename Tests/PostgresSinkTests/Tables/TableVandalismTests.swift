import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// What somebody does to the tables of a sink, and what each part of the program makes of it.
struct Vandalism: CustomTestStringConvertible, Sendable {
  enum Outcome: Sendable {
    /// The run goes on; the notice says so.
    case repaired(String)
    /// The run goes on as if nothing had been.
    case harmless
    /// The run ends before a row is written.
    case refused(PostgresError.Disposition, String)
  }

  var name: String
  var sql: String
  var outcome: Outcome
  /// Executed before the run that goes on; nil for `--accept-missing`.
  var remedy: String? = ""
  /// The rows of the history that are left.
  var lostHistory = false
  /// Names that the history had are gone.
  var lostNames = false
  /// Current rows that are left after it was accepted that they are gone.
  var lostCurrent = false
  var mode = PostgresSinkConfiguration.Mode.both
  /// Seen by `status` and `refold`, which know no layout.
  var isSurveyed = true
  /// The same while a run is going on.
  var isMidRun = true

  var testDescription: String { self.name }

  static let history = "salesforce.opportunity_history"
  static let current = "salesforce.opportunity"

  static let all: [Self] = [
    Self(
      name: "current table dropped", sql: "DROP TABLE \(current) CASCADE",
      outcome: .repaired("is rebuilt from the history")),
    Self(
      name: "current table renamed",
      sql: "ALTER TABLE \(current) RENAME TO opportunity_old",
      outcome: .repaired("is rebuilt from the history")),
    Self(
      name: "current table dropped, without history", sql: "DROP TABLE \(current) CASCADE",
      outcome: .refused(.lostTable, "without a history it cannot be rebuilt"), remedy: nil,
      lostCurrent: true, mode: .current),
    Self(
      name: "history dropped", sql: "DROP TABLE \(history) CASCADE",
      outcome: .refused(.lostTable, "a history cannot be rebuilt"), remedy: nil, lostHistory: true),
    Self(
      name: "history renamed", sql: "ALTER TABLE \(history) RENAME TO old_history",
      outcome: .refused(.lostTable, "if it is salesforce.old_history now"),
      remedy: "ALTER TABLE salesforce.old_history RENAME TO opportunity_history"),
    Self(
      name: "history moved", sql: "ALTER TABLE \(history) SET SCHEMA public",
      outcome: .refused(.lostTable, "if it is public.opportunity_history now"),
      remedy: "ALTER TABLE public.opportunity_history SET SCHEMA salesforce"),
    Self(
      name: "both dropped", sql: "DROP TABLE \(history), \(current) CASCADE",
      outcome: .refused(.lostTable, "opportunity_history"), remedy: nil, lostHistory: true,
      lostCurrent: true),
    Self(
      name: "live view dropped", sql: "DROP VIEW salesforce.opportunity_live",
      outcome: .repaired("view opportunity_live was gone and is made anew"), isSurveyed: false,
      isMidRun: false),
    Self(
      name: "all views dropped",
      sql: "DROP VIEW salesforce.opportunity_live, salesforce._freshness", outcome: .harmless),
    Self(
      name: "a table in place of a view",
      sql:
        "DROP VIEW salesforce.opportunity_live; CREATE TABLE salesforce.opportunity_live (a int)",
      outcome: .harmless),
    Self(
      name: "somebody's view on the tables",
      sql: """
        CREATE VIEW public.mine AS SELECT l.id, l.name, h._epoch FROM salesforce.opportunity_live l
        JOIN \(history) h ON h._record_id = l.id
        """, outcome: .harmless),
    Self(
      name: "_etl_table dropped", sql: "DROP TABLE salesforce._etl_table CASCADE",
      outcome: .repaired("_etl_table is missing"), isMidRun: false),
    Self(
      name: "_etl_column dropped", sql: "DROP TABLE salesforce._etl_column",
      outcome: .repaired("_etl_column is missing"), isMidRun: false),
    Self(
      name: "_etl_journal dropped", sql: "DROP TABLE salesforce._etl_journal",
      outcome: .repaired("_etl_journal is missing"), isMidRun: false),
    Self(
      name: "_etl_resync and _etl_tombstone dropped",
      sql: "DROP TABLE salesforce._etl_resync, salesforce._etl_tombstone",
      outcome: .repaired("_etl_resync, _etl_tombstone are missing"), isMidRun: false),
    Self(
      name: "column of the current table renamed",
      sql: "ALTER TABLE \(current) RENAME COLUMN name TO title",
      outcome: .refused(.configuration, "was renamed to \"title\""),
      remedy: "ALTER TABLE \(current) RENAME COLUMN title TO name"),
    Self(
      name: "last column of the history renamed",
      sql: "ALTER TABLE \(history) RENAME COLUMN amount TO value",
      outcome: .refused(.configuration, "was renamed to \"value\""),
      remedy: "ALTER TABLE \(history) RENAME COLUMN value TO amount"),
    Self(
      name: "own column renamed", sql: "ALTER TABLE \(history) RENAME COLUMN _epoch TO era",
      outcome: .refused(.configuration, "column _epoch integer was renamed or dropped"),
      remedy: "ALTER TABLE \(history) RENAME COLUMN era TO _epoch"),
    Self(
      name: "own column of another type",
      sql: "ALTER TABLE \(history) ALTER COLUMN _ordinal TYPE numeric",
      outcome: .refused(.configuration, "column _ordinal was altered to numeric"),
      remedy: "ALTER TABLE \(history) ALTER COLUMN _ordinal TYPE bigint"),
    Self(
      name: "column of the current table dropped",
      sql: "ALTER TABLE \(current) DROP COLUMN name CASCADE",
      outcome: .repaired("again, where it was dropped, and is filled from the history"),
      isSurveyed: false, isMidRun: false),
    Self(
      name: "column of the history dropped", sql: "ALTER TABLE \(history) DROP COLUMN name CASCADE",
      outcome: .refused(.lostTable, "run --accept-missing"),
      remedy: nil, lostNames: true, isSurveyed: false, isMidRun: false),
    Self(
      name: "column of another type",
      sql: "ALTER TABLE \(history) ALTER COLUMN amount TYPE text",
      outcome: .refused(.configuration, "alter one of them"),
      remedy:
        "ALTER TABLE \(history) ALTER COLUMN amount TYPE double precision USING amount::float8",
      isSurveyed: false, isMidRun: false),
    Self(
      name: "a NOT NULL column of somebody's own",
      sql: """
        ALTER TABLE \(current) ADD COLUMN owner_note text NOT NULL DEFAULT '';
        ALTER TABLE \(current) ALTER COLUMN owner_note DROP DEFAULT
        """,
      outcome: .refused(.configuration, "column \"owner_note\" of table"),
      remedy: "ALTER TABLE \(current) ALTER COLUMN owner_note DROP NOT NULL"),
    Self(
      name: "a NOT NULL column with a default",
      sql: "ALTER TABLE \(history) ADD COLUMN note text NOT NULL DEFAULT ''", outcome: .harmless),
    Self(
      name: "a field made NOT NULL that some events lack",
      sql:
        "ALTER TABLE \(history) ALTER COLUMN name SET NOT NULL; DELETE FROM \(history) WHERE false",
      outcome: .harmless),
    Self(
      name: "a view in place of the table",
      sql: """
        ALTER TABLE \(current) RENAME TO opportunity_base;
        CREATE VIEW \(current) AS SELECT * FROM salesforce.opportunity_base
        """,
      outcome: .refused(.configuration, "is needed as a table but is a view"),
      remedy: "DROP VIEW \(current); ALTER TABLE salesforce.opportunity_base RENAME TO opportunity",
      isMidRun: false),
    Self(
      name: "primary key dropped",
      sql: "ALTER TABLE \(current) DROP CONSTRAINT opportunity_pkey",
      outcome: .harmless),
    Self(
      name: "a rule", sql: "CREATE RULE away AS ON INSERT TO \(current) DO INSTEAD NOTHING",
      outcome: .refused(.configuration, "has rules (away)"),
      remedy: "DROP RULE away ON \(current)"),
    Self(
      name: "a rule that adds something",
      sql: """
        CREATE TABLE public.log (id text);
        CREATE RULE log AS ON UPDATE TO \(current) DO ALSO INSERT INTO public.log VALUES (NEW.id)
        """,
      outcome: .refused(.configuration, "has rules (log)"), remedy: "DROP RULE log ON \(current)"),
    Self(
      name: "a rule that is disabled",
      sql: """
        CREATE RULE away AS ON INSERT TO \(current) DO INSTEAD NOTHING;
        ALTER TABLE \(current) DISABLE RULE away
        """, outcome: .harmless),
    Self(
      name: "rules against deletion",
      sql: """
        CREATE RULE keep AS ON DELETE TO \(current) DO INSTEAD NOTHING;
        CREATE RULE keep AS ON DELETE TO \(history) DO INSTEAD NOTHING
        """, outcome: .harmless),
    Self(
      name: "a rule of the history, which COPY passes by",
      sql: "CREATE RULE away AS ON INSERT TO \(history) DO INSTEAD NOTHING", outcome: .harmless),
    Self(
      name: "a NOT NULL column that a trigger fills",
      sql: """
        ALTER TABLE \(history) ADD COLUMN tenant text NOT NULL DEFAULT 'x';
        ALTER TABLE \(history) ALTER COLUMN tenant DROP DEFAULT;
        CREATE FUNCTION public.fill() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN NEW.tenant := current_user; RETURN NEW; END';
        CREATE TRIGGER fill BEFORE INSERT ON \(history) FOR EACH ROW
        EXECUTE FUNCTION public.fill()
        """, outcome: .harmless),
    Self(
      name: "NOT NULL columns that the server fills",
      sql: """
        ALTER TABLE \(history) ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
        ALTER TABLE \(history) ADD COLUMN twice bigint NOT NULL
        GENERATED ALWAYS AS (_ordinal * 2) STORED;
        CREATE DOMAIN public.tenant AS text NOT NULL DEFAULT 'x';
        ALTER TABLE \(history) ADD COLUMN tenant public.tenant
        """, outcome: .harmless),
    Self(
      name: "a column of a domain that may not be null",
      sql: """
        CREATE DOMAIN public.tenant AS text NOT NULL;
        ALTER TABLE \(current) ADD COLUMN tenant public.tenant DEFAULT 'x';
        ALTER TABLE \(current) ALTER COLUMN tenant DROP DEFAULT
        """,
      outcome: .refused(.configuration, "column \"tenant\" of table"),
      remedy: "ALTER TABLE \(current) ALTER COLUMN tenant SET DEFAULT ''"),
    Self(
      name: "such a column of the history, which COPY passes by",
      sql: """
        CREATE DOMAIN public.tenant AS text NOT NULL;
        ALTER TABLE \(history) ADD COLUMN tenant public.tenant DEFAULT 'x';
        ALTER TABLE \(history) ALTER COLUMN tenant DROP DEFAULT
        """, outcome: .harmless),
    Self(
      name: "live view renamed",
      sql: "ALTER VIEW salesforce.opportunity_live RENAME TO opportunities", outcome: .harmless),
    Self(
      name: "a longer key and an index",
      sql: """
        CREATE UNIQUE INDEX ON \(history) (_topic, _epoch, _ordinal, _record_id);
        CREATE INDEX ON \(current) (lower(name))
        """, outcome: .harmless),
    Self(
      name: "a trigger",
      sql: """
        CREATE FUNCTION public.pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER pass BEFORE INSERT OR UPDATE ON \(current) FOR EACH ROW
        EXECUTE FUNCTION public.pass()
        """, outcome: .harmless),
  ]
}

@Suite("Tables changed by hand", .enabled(if: PostgresCluster.isAvailable))
struct TableVandalismTests {
  private func settings(
    _ vandalism: Vandalism
  ) -> (inout PostgresSinkConfiguration) -> Void {
    { $0.mode = vandalism.mode }
  }

  private func amounts(_ name: String) -> [Int: TestCell] { [SinkRun.amount: .double(1.5)] }

  /// Rows of both tables: IDs and values.
  private func contents(_ run: SinkRun, _ vandalism: Vandalism) throws -> [[String]] {
    let history =
      vandalism.mode == .both
      ? try run.eye.column(
        "SELECT _record_id || ' ' || coalesce(name, '-') || ' ' || coalesce(amount, 0) FROM \(Vandalism.history) ORDER BY _ordinal"
      ) : []
    let current = try run.eye.column(
      "SELECT id || ' ' || name || ' ' || coalesce(amount, 0) FROM \(Vandalism.current) WHERE NOT _stale AND NOT _partial ORDER BY _ordinal"
    )
    return [history, current]
  }

  private func expected(_ vandalism: Vandalism, new: [String]) -> [[String]] {
    let old = ["first first 0", "a a 1.5", "b b 1.5"]
    let new = new.map { "\($0) \($0) 1.5" }
    let unnamed = ["first - 0", "a - 1.5", "b - 1.5"]
    let history = (vandalism.lostHistory ? [] : vandalism.lostNames ? unnamed : old) + new
    return [
      vandalism.mode == .both ? history : [], (vandalism.lostCurrent ? [] : old) + new,
    ]
  }

  private func check(_ error: PostgresError?, _ vandalism: Vandalism, notices: [String]) {
    switch vandalism.outcome {
    case .harmless: #expect(error == nil, "\(String(describing: error))")
    case .repaired(let text):
      #expect(error == nil, "\(String(describing: error))")
      #expect(notices.contains { $0.contains(text) }, "\(notices)")
    case .refused(let disposition, let text):
      #expect(error?.disposition == disposition, "\(String(describing: error))")
      #expect(error?.message.contains(text) == true, "\(String(describing: error))")
    }
  }

  @Test(
    "Found at the start, said by all, put right or refused; then the data are whole",
    arguments: Vandalism.all)
  func atStart(_ vandalism: Vandalism) async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database, self.settings(vandalism)).begin()
    try first.write(["a", "b"], self.amounts)
    try first.commit()
    first.sink.close()
    try first.eye.execute(vandalism.sql)

    let configuration = database.configuration(self.settings(vandalism))
    let feeder = TableFeeder(pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
    try self.checkPlan(vandalism, configuration, feeder)
    if vandalism.isSurveyed {
      let findings = try TableCatalog(configuration, feeder: feeder).survey(over: first.eye)
      switch vandalism.outcome {
      case .harmless: #expect(findings == [])
      case .repaired: #expect(findings.count == 1 && findings[0].disposition == nil)
      case .refused(let disposition, let text):
        #expect(findings.first?.disposition == disposition, "\(findings)")
        #expect(findings.first?.message.contains(text) == true, "\(findings)")
      }
    }
    let second = try SinkRun(database, ordinal: 3, self.settings(vandalism))
    let error = postgresError {
      try second.sink.open()
      try second.write(["c"], self.amounts)
      try second.commit()
    }
    second.sink.close()
    self.check(error, vandalism, notices: second.notices)
    if error == nil {
      #expect(try self.contents(second, vandalism) == self.expected(vandalism, new: ["c"]))
      if !vandalism.sql.contains("CREATE TABLE salesforce.opportunity_live") {
        #expect(try second.eye.column("SELECT count(*) FROM salesforce.opportunity_live") == ["4"])
      }
      return
    }
    // The remedy that the message gives.
    if let remedy = vandalism.remedy { try second.eye.execute(remedy) }
    let third = try SinkRun(
      database, acceptsMissing: vandalism.remedy == nil, ordinal: 3, self.settings(vandalism))
    try third.sink.open()
    try third.write(["c"], self.amounts)
    try third.commit()
    #expect(try self.contents(third, vandalism) == self.expected(vandalism, new: ["c"]))
    #expect(third.refused.isEmpty && second.refused.isEmpty)
  }

  private func checkPlan(
    _ vandalism: Vandalism, _ configuration: PostgresSinkConfiguration, _ feeder: TableFeeder
  ) throws {
    var plan: TablePlan?
    let error = postgresError {
      plan = try TableCatalog.plan([SinkRun.layout()], configuration, feeder: feeder)
    }
    switch vandalism.outcome {
    case .refused(.lostTable, let text):
      #expect(plan?.refusals.first?.contains(text) == true, "\(String(describing: error))")
      #expect(plan?.sql.contains("INSERT INTO \"salesforce\".\"_etl_table\"") == false)
    case .refused(let disposition, let text):
      #expect(error?.disposition == disposition && error?.message.contains(text) == true)
    case .harmless, .repaired:
      #expect(plan?.refusals == [], "\(String(describing: error))")
    }
  }

  @Test("Found by the run that is going on", arguments: Vandalism.all.filter(\.isMidRun))
  func midRun(_ vandalism: Vandalism) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database, self.settings(vandalism)).begin()
    // The same for all rows: the tables are not looked at again before the commit.
    let layout = SinkRun.layout()
    try run.write(["a", "b"], layout: layout, self.amounts)
    try run.commit()
    try run.eye.execute(vandalism.sql)
    try run.write(["c"], layout: layout, self.amounts)
    let error = postgresError { try run.commit() }
    self.check(error, vandalism, notices: run.notices)
    #expect(try run.refused.isEmpty && run.noted().isEmpty)
    guard error == nil else {
      run.sink.close()
      if let remedy = vandalism.remedy { try run.eye.execute(remedy) }
      let next = try SinkRun(
        database, acceptsMissing: vandalism.remedy == nil, ordinal: 3, self.settings(vandalism))
      try next.sink.open()
      try next.write(["c"], self.amounts)
      try next.commit()
      #expect(try self.contents(next, vandalism) == self.expected(vandalism, new: ["c"]))
      return
    }
    #expect(try self.contents(run, vandalism) == self.expected(vandalism, new: ["c"]))
  }

  @Test("Executed, the plan for a dropped table leaves its rows to the next run")
  func plannedRestoration() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    try run.eye.execute("DROP TABLE \(Vandalism.current) CASCADE")
    let frozen = try SinkRun(database, ordinal: 1) { $0.contract = .freeze }
    #expect(postgresError { try frozen.sink.open() }?.disposition == .contract)
    let plan = try TableCatalog.plan(
      [], database.configuration { $0.contract = .freeze },
      feeder: TableFeeder(pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic]))
    #expect(plan.refusals.count == 1 && plan.notes.count == 1)
    try run.eye.execute(plan.sql)
    #expect(try run.current() == [])
    let next = try SinkRun(database, ordinal: 1) { $0.contract = .freeze }
    try next.sink.open()
    #expect(try next.current() == ["first"])
  }

  @Test("A field made NOT NULL ends the run by name before an event without it is a dead letter")
  func notNull() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE \(Vandalism.current) ALTER COLUMN name SET NOT NULL")
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.addChange("CREATE", "x", ordinal: 1)
    try run.sink.write(batch)
    let error = postgresError { try run.prepare() }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("column \"name\" of table") == true)
    #expect(run.refused.isEmpty)
  }

  @Test("A renamed column is followed where a stage gives its field the new name")
  func followedRename() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    for table in [Vandalism.current, Vandalism.history] {
      try run.eye.execute("ALTER TABLE \(table) RENAME COLUMN name TO title")
    }
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    let sink = Staged(next.sink, stages: StageChain([Rename(["Name": "title"])]))
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.addChange("CREATE", "a", ordinal: 1, [SinkRun.name: .text("a")])
    try sink.write(batch)
    _ = try next.sink.prepare(next.positions)
    try sink.commit()
    #expect(
      try next.eye.column("SELECT title FROM \(Vandalism.current) ORDER BY id") == ["a", "first"])
    #expect(
      try next.eye.column(
        "SELECT count(*) FROM salesforce._etl_column WHERE column_name = 'name'") == ["0"])
  }

  @Test("The view that a killed run has not come to make is not reported as dropped")
  func killedBeforeView() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    try run.write(["first"])
    run.sink.close()
    try run.eye.execute("DROP VIEW salesforce.opportunity_live")
    let next = try SinkRun(database)
    try next.sink.open()
    #expect(next.notices == [])
    #expect(try next.eye.column("SELECT count(*) FROM salesforce.opportunity_live") == ["0"])
  }

  @Test("A trigger that discards rows of a history ends the run before anything is lost")
  func discardingTrigger() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.eye.execute(
      """
      CREATE FUNCTION public.discard() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF NEW._record_id = ''b'' THEN RETURN NULL; END IF; RETURN NEW; END';
      CREATE TRIGGER discard BEFORE INSERT ON \(Vandalism.history)
      FOR EACH ROW EXECUTE FUNCTION public.discard()
      """)
    try run.write(["a", "b", "c"])
    let error = postgresError { try run.commit() }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("2 of 3 rows were stored; a trigger") == true)
    run.sink.close()
    #expect(try run.history() == ["first"])
    try run.eye.execute("DROP TRIGGER discard ON \(Vandalism.history)")
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    try next.write(["a", "b", "c"])
    try next.commit()
    #expect(try next.history() == ["first", "a", "b", "c"])
  }

  @Test("A schema that was renamed is not made again")
  func renamedSchema() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    try run.eye.execute("ALTER SCHEMA salesforce RENAME TO sf")
    let error = postgresError { try SinkRun(database).sink.open(isKnown: true) }
    #expect(error?.disposition == .lostTable)
    #expect(error?.message.contains("The like of it are \"sf\"") == true)
    try run.eye.execute("ALTER SCHEMA sf RENAME TO salesforce")
    #expect(try SinkRun(database, ordinal: 1).sink.open(isKnown: true) != nil)
  }

  @Test("Rights that are taken away are told with the statement that gives them back")
  func revoked() async throws {
    let database = try await TestDatabase()
    let owner = try database.connect()
    let role = "loader_\(database.name)"
    try owner.execute(
      "CREATE ROLE \(role) LOGIN; GRANT CREATE ON DATABASE \(database.name) TO \(role)")
    let url = "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"
    let run = try SinkRun(database, url: url).begin()
    let layout = SinkRun.layout()
    try run.write(["b"], layout: layout)
    try run.commit()
    try owner.execute(
      """
      ALTER TABLE \(Vandalism.current) OWNER TO CURRENT_USER; REVOKE ALL ON \(Vandalism.current)
      FROM \(role); GRANT SELECT ON \(Vandalism.current) TO \(role)
      """)
    try run.write(["a"], layout: layout)
    let error = postgresError { try run.commit() }
    #expect(error?.disposition == .refused)
    #expect(error?.message.contains("GRANT INSERT, UPDATE ON") == true)
    run.sink.close()
    try owner.execute("GRANT INSERT, UPDATE ON \(Vandalism.current) TO \(role)")
    let next = try SinkRun(database, ordinal: 2, url: url)
    try next.sink.open()
    try next.write(["a"])
    try next.commit()
    #expect(try next.current() == ["first", "b", "a"])
  }
}
