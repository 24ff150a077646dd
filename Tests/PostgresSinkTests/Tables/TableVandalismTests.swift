import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

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
    "Manual changes found at the start are reported, and repaired or refused",
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

  @Test(
    "Manual changes are found by the run in progress", arguments: Vandalism.all.filter(\.isMidRun))
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

  @Test("The executed plan for a dropped table leaves its rows to the next run")
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

  @Test(
    "A NOT NULL constraint on a field ends the run, and no event becomes a dead letter")
  func notNull() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE \(Vandalism.current) ALTER COLUMN name SET NOT NULL")
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.addChange("CREATE", "x", ordinal: 1)
    try run.sink.take(batch)
    let error = postgresError { try run.prepare() }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("column \"name\" of table") == true)
    #expect(run.refused.isEmpty)
  }

  @Test("A renamed column is used when a stage gives its field the new name")
  func followedRename() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    for table in [Vandalism.current, Vandalism.history] {
      try run.eye.execute("ALTER TABLE \(table) RENAME COLUMN name TO title")
    }
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    let sink = StagedStore(next.sink, stages: StageChain([Rename(["Name": "title"])]))
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.addChange("CREATE", "a", ordinal: 1, [SinkRun.name: .text("a")])
    try next.sink.ask { try sink.makeReady(for: batch.layout) }
    try sink.write(batch)
    _ = try next.sink.sealAndPrepare(next.positions)
    try next.sink.commitPatiently()
    #expect(
      try next.eye.column("SELECT title FROM \(Vandalism.current) ORDER BY id") == ["a", "first"])
    #expect(
      try next.eye.column(
        "SELECT count(*) FROM salesforce._etl_column WHERE column_name = 'name'") == ["0"])
  }

  @Test("A view that a killed run had not yet created is not reported as dropped")
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

  @Test("A trigger that discards history rows ends the run before anything is lost")
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

  @Test("A renamed schema is not created again")
  func renamedSchema() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    try run.eye.execute("ALTER SCHEMA salesforce RENAME TO sf")
    let error = postgresError { try SinkRun(database).sink.open(isKnown: true) }
    #expect(error?.disposition == .lostTable)
    #expect(error?.message.contains("Schemas with such tables: \"sf\"") == true)
    try run.eye.execute("ALTER SCHEMA sf RENAME TO salesforce")
    #expect(try SinkRun(database, ordinal: 1).sink.open(isKnown: true) != nil)
  }

  @Test("Revoked rights are reported with the statement that grants them")
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
      CREATE ROLE \(role)_owner; GRANT USAGE, CREATE ON SCHEMA salesforce TO \(role)_owner;
      ALTER TABLE \(Vandalism.current) OWNER TO \(role)_owner; REVOKE ALL ON \(Vandalism.current)
      FROM \(role); GRANT SELECT ON \(Vandalism.current) TO \(role)
      """)
    try run.write(["a"], layout: layout)
    let error = postgresError { try run.commit() }
    #expect(error?.disposition == .refused)
    let message = try #require(error?.message)
    #expect(message.contains("GRANT"), "\(message)")
    run.sink.close()
    try owner.execute("GRANT INSERT, UPDATE ON \(Vandalism.current) TO \(role)")
    let next = try SinkRun(database, ordinal: 2, url: url)
    try next.sink.open()
    try next.write(["a"])
    try next.commit()
    #expect(try next.current() == ["first", "b", "a"])
  }
}
