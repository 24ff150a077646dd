import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("PostgreSQL sink", .enabled(if: PostgresCluster.isAvailable)) struct PostgresSinkTests {
  @Test("Rows, positions and lease are stored in one transaction")
  func oneTransaction() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.write(["a", "b"])
    try run.prepare()
    #expect(try run.history() == ["first"] && run.current() == ["first"])
    #expect(try run.storedOrdinal() == "1")
    #expect(run.sink.committedRowCount == 1)
    try run.sink.commitPatiently()
    #expect(try run.history() == ["first", "a", "b"])
    #expect(try run.current() == ["first", "a", "b"])
    #expect(try run.storedOrdinal() == "3")
    #expect(run.sink.committedRowCount == 3 && run.sink.pendingByteCount == 0)
    #expect(run.refused.isEmpty)
    let row = try run.eye.rows(
      """
      SELECT owner, fence, lease_until > now() + interval '50 seconds', complete_through \
      FROM salesforce._etl_checkpoint
      """)
    #expect(row[0].prefix(3) == ["host /state pid 7 id host /state", "2", "t"])
    #expect(row[0][3].contains("2026-02-17"))
    run.sink.close()
    #expect(
      try run.eye.column("SELECT lease_until <= now() FROM salesforce._etl_checkpoint") == ["t"])
  }

  @Test("A prepared transaction that never commits is gone, and the next run writes its rows")
  func abandoned() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    try first.write(["a"])
    try first.prepare()
    first.sink.close()
    #expect(try first.history() == ["first"])
    let second = try SinkRun(database, ordinal: 1)
    let stored = try second.sink.open()
    #expect(stored?[SinkRun.topic]?.nextOrdinal == 1)
    try second.write(["a"])
    try second.commit()
    #expect(try second.history() == ["first", "a"])
  }

  @Test("A database that does not know the sink says so and gives the epochs of its rows")
  func unknown() async throws {
    for mode in [PostgresSinkConfiguration.Mode.both, .current] {
      let database = try await TestDatabase()
      let other = try SinkRun(database) { $0.mode = mode }
      #expect(try other.sink.open() == nil)
      #expect(try other.sink.newestEpoch(ofTopics: [SinkRun.topic]) == nil)
      let run = try SinkRun(database, epoch: 3) { $0.mode = mode }.begin()
      run.sink.close()
      try run.eye.execute("DELETE FROM salesforce._etl_checkpoint")
      #expect(try other.sink.open() == nil)
      #expect(try other.sink.newestEpoch(ofTopics: [SinkRun.topic]) == 3)
      #expect(try other.sink.newestEpoch(ofTopics: ["/data/AccountChangeEvent"]) == nil)
    }
  }

  @Test("Positions of another org are refused")
  func otherOrg() async throws {
    let database = try await TestDatabase()
    try SinkRun(database).begin().sink.close()
    let sink = try PostgresSink(
      name: "warehouse", configuration: database.configuration(), pipeline: "opps", org: "00X",
      owner: LeaseOwner(place: "host /state", identity: "a", processID: 7), takesOver: false)
    let error = #expect(throws: OtherOrgError.self) { try sink.open() }
    #expect(error?.description.contains("00D") == true)
    // Another pipeline in the schema is refused on its first run, too, and without any positions.
    for statement in ["SELECT", "DELETE FROM salesforce._etl_checkpoint"] {
      try database.connect().execute(statement)
      let first = try PostgresSink(
        name: "warehouse", configuration: database.configuration(), pipeline: "new", org: "00X",
        owner: LeaseOwner(place: "host /state", identity: "b", processID: 7), takesOver: true)
      #expect(throws: OtherOrgError.self) { try first.open() }
      #expect(throws: OtherOrgError.self) { try first.open(creating: [:]) }
    }
    let same = try PostgresSink(
      name: "warehouse", configuration: database.configuration(), pipeline: "new", org: "00D",
      owner: LeaseOwner(place: "host /state", identity: "b", processID: 7), takesOver: false)
    #expect(try same.open(creating: [:]) == [:])
  }

  @Test("An event ID that the database's JSON cannot hold stops nothing")
  func nullInEventID() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    _ = try run.sink.sealAndPrepare([
      SinkRun.topic: ["next_ordinal": 5, "recent": ["a\0b", "\\u0000"]]
    ])
    try run.sink.commitPatiently()
    #expect(
      try run.eye.column(
        "SELECT topics -> '\(SinkRun.topic)' ->> 'recent' FROM salesforce._etl_checkpoint")
        == [#"["a\#u{FFFD}b", "\\u0000"]"#])
  }

  @Test("A large event of many records is held once for any number of rows")
  func largeEvent() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let batch = RecordBatch(layout: SinkRun.layout())
    let ids = (1...200).map { "\"r\($0)\"" }.joined(separator: ",")
    batch.addChange(
      "UPDATE", "", ordinal: 1,
      metadata: [MetadataSlot.recordID: .null, MetadataSlot.recordIDs: .text("[\(ids)]")],
      [SinkRun.name: .text(String(repeating: "x", count: 1_000_000))])
    try run.sink.take(batch)
    #expect(run.sink.pendingByteCount < 1_500_000)
    try run.commit()
    for table in ["opportunity", "opportunity_history"] {
      #expect(
        try run.eye.rows(
          "SELECT count(*), min(length(name)) FROM salesforce.\(table) WHERE _ordinal = 1")
          == [["200", "1000000"]])
    }
  }

  @Test("An entity of two topics is refused because the order of its events is unknown")
  func twoTopics() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let known = SinkRun.layout()
    let channel = RecordLayout(
      topic: "/data/ChangeEvents", schemaID: known.schemaID, entity: known.entity,
      family: known.family, slotCount: known.slotCount, fieldOrder: known.fieldOrder,
      columns: known.columns)
    let error = postgresError { try run.write(["a"], layout: channel) }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("/data/ChangeEvents") == true)
    // In a history each event would be there twice.
    let history = try SinkRun(try await TestDatabase()) { $0.mode = .history }
    try history.sink.open(creating: [:])
    try history.write(["a"])
    #expect(postgresError { try history.write(["b"], layout: channel) } != nil)
    // The channel may come first: that the object has a topic of its own is known all the same.
    let early = try SinkRun(
      try await TestDatabase(), topics: ["/data/ChangeEvents", SinkRun.topic])
    try early.sink.open(creating: [:])
    #expect(postgresError { try early.write(["a"], layout: channel) } != nil)
    #expect(try early.eye.column("SELECT table_name FROM salesforce._etl_table") == [])
  }

  @Test("A sink's own stages change only its own columns")
  func ownStages() async throws {
    let run = try SinkRun(try await TestDatabase())
    try run.sink.open(creating: [:])
    let sink = StagedStore(run.sink, stages: StageChain([Drop(["Parent"])]))
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.addChange(
      "CREATE", "a", ordinal: 0, [SinkRun.name: .text("a"), SinkRun.parent: .text("p")])
    try run.sink.ask { try sink.makeReady(for: batch.layout) }
    try sink.write(batch)
    _ = try run.sink.sealAndPrepare(run.positions)
    try run.sink.commitPatiently()
    #expect(
      try run.eye.column(
        "SELECT column_name FROM salesforce._etl_column WHERE table_name = 'opportunity' ORDER BY 1"
      )
        == ["amount", "name"])
    #expect(try run.current() == ["a"])
    #expect(batch.layout.columns.contains { $0.name == "Parent" })
  }

  // MARK: Leases

  @Test("While another owner holds a valid lease, a run is refused with its name, or takes it over")
  func leases() async throws {
    let database = try await TestDatabase()
    let owner = try SinkRun(database).begin()
    let other = try SinkRun(database, place: "elsewhere /state")
    let error = #expect(throws: LeaseError.self) { try other.sink.open() }
    #expect(error?.description.contains("host /state pid 7") == true)
    #expect(error?.description.contains("--take-over") == true)
    // Nothing has changed for the owner.
    try owner.write(["a"])
    try owner.commit()

    let taker = try SinkRun(database, place: "elsewhere /state", takesOver: true, ordinal: 2)
    #expect(try taker.sink.open()?[SinkRun.topic]?.nextOrdinal == 2)
    #expect(taker.sink.formerLease?.owner == "host /state pid 7 id host /state")
    let entries = "SELECT detail FROM salesforce._etl_journal WHERE action = 'take_over'"
    let entry = try JSONValue(parsing: #require(try taker.eye.column(entries).first))
    #expect(entry["command"] == "run --take-over" && entry["sink"] == "warehouse")
    #expect(entry["owner"] == "elsewhere /state pid 7 id elsewhere /state")
    #expect(entry["former_owner"] == "host /state pid 7 id host /state")
    #expect(entry["fence"]?.integer == 3)
    try owner.write(["lost"])
    let fenced = #expect(throws: LeaseError.self) { try owner.commit() }
    #expect(fenced?.description.contains("elsewhere /state pid 7") == true)
    owner.sink.close()
    try taker.write(["b"])
    try taker.commit()
    #expect(try taker.history() == ["first", "a", "b"])
  }

  @Test("An expired or released lease, and one of the same owner, is free")
  func freeLeases() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    #expect(try SinkRun(database).sink.open() != nil)
    #expect(throws: LeaseError.self) { try SinkRun(database, place: "host /sta").sink.open() }
    try first.eye.execute("UPDATE salesforce._etl_checkpoint SET lease_until = now()")
    let second = try SinkRun(database, place: "elsewhere /state")
    #expect(try second.sink.open() != nil)
    second.sink.close()
    let third = try SinkRun(database, place: "a third /state", takesOver: true)
    #expect(try third.sink.open() != nil)
    #expect(try third.eye.column("SELECT fence FROM salesforce._etl_checkpoint") == ["5"])
    // What was nobody's has not been taken over.
    #expect(third.sink.formerLease == nil)
    let entries = "SELECT count(*) FROM salesforce._etl_journal WHERE action = 'take_over'"
    #expect(try third.eye.column(entries) == ["0"])
  }

  @Test("Containers with the same host name and path are two owners, and a renamed host is one")
  func identity() async throws {
    let database = try await TestDatabase()
    try SinkRun(database, place: "etl /state", identity: "aa").begin()
    let twin = try SinkRun(database, place: "etl /state", identity: "bb")
    #expect(throws: LeaseError.self) { try twin.sink.open() }
    // An owner of an earlier version has no identity: it may be any container of that name.
    try twin.eye.execute("UPDATE salesforce._etl_checkpoint SET owner = 'etl /state pid 7'")
    #expect(throws: LeaseError.self) { try twin.sink.open() }
    try twin.eye.execute("UPDATE salesforce._etl_checkpoint SET owner = 'etl /state pid 7 id aa'")
    #expect(try SinkRun(database, place: "new /mnt/state", identity: "aa").sink.open() != nil)
  }

  @Test("A takeover between prepare and commit waits for the commit")
  func takenDuringCommit() async throws {
    let database = try await TestDatabase()
    let owner = try SinkRun(database).begin()
    try owner.write(["a"])
    try owner.prepare()
    let taker = try SinkRun(database, place: "elsewhere /state", takesOver: true) {
      $0.connection.lockTimeout = .milliseconds(1)
    }
    taker.onNotice = { _ in try owner.sink.commitPatiently() }
    #expect(try taker.sink.open()?[SinkRun.topic]?.nextOrdinal == 2)
    #expect(taker.notices.count == 1)
    try owner.write(["b"])
    #expect(throws: LeaseError.self) { try owner.commit() }
  }

  @Test("A checkpoint row that disappears ends the run without a commit")
  func goneCheckpoint() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute("DELETE FROM salesforce._etl_checkpoint")
    try run.write(["a"])
    #expect(throws: LeaseError.self) { try run.commit() }
    run.sink.close()
    #expect(try run.history() == ["first"])
  }

  // MARK: Changing tables

  @Test("Waiting rows reach their own columns after a column is added or changes its type")
  func changedTables() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let old = SinkRun.layout()
    try run.write(["a"], layout: old) { _ in [SinkRun.amount: .double(1.5)] }
    let wider = SinkRun.layout(schemaID: "schema-2", [Column("Stage", 3, .string)])
    try run.write(["b"], layout: wider) { _ in
      [SinkRun.amount: .double(2.5), SinkRun.amount + 1: .text("won")]
    }
    let changed = SinkRun.layout(.string, schemaID: "schema-3")
    try run.write(["c"], layout: changed) { _ in [SinkRun.amount: .text("three")] }
    try run.write(["d"], layout: old) { _ in [SinkRun.amount: .double(4.5)] }
    try run.write(["a"], layout: changed, type: "UPDATE") { _ in [SinkRun.amount: .text("one")] }
    try run.commit()
    let expected = [
      ["b", "2.5", "-", "won"], ["c", "-", "three", "-"], ["d", "4.5", "-", "-"],
      ["a", "1.5", "one", "-"],
    ]
    #expect(
      try run.eye.rows(
        """
        SELECT id, amount__float8, amount, stage FROM salesforce.opportunity \
        WHERE id <> 'first' ORDER BY _ordinal
        """) == expected)
    #expect(
      try run.eye.rows(
        """
        SELECT _record_id, amount__float8, amount, stage \
        FROM salesforce.opportunity_history WHERE _ordinal > 0 ORDER BY _ordinal
        """) == [["a", "1.5", "-", "-"]] + expected.dropLast() + [["a", "-", "one", "-"]])
    try run.write(["e"], layout: old) { _ in [SinkRun.amount: .double(5.5)] }
    try run.commit()
    #expect(
      try run.eye.column("SELECT amount__float8 FROM salesforce.opportunity WHERE id = 'e'")
        == ["5.5"])
  }

  @Test("A rebuild maps names in field lists to the columns that had them")
  func refoldOfChangedTables() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let number = SinkRun.layout()
    let text = SinkRun.layout(.string, schemaID: "schema-2")
    let again = SinkRun.layout(schemaID: "schema-3")
    func null(_ layout: RecordLayout) throws {
      try run.write(["a"], layout: layout, type: "UPDATE") { _ in
        [
          SinkRun.amount: .null, MetadataSlot.changedFields: .slots([SinkRun.amount]),
          MetadataSlot.nulledFields: .slots([SinkRun.amount]),
        ]
      }
    }
    func refold() throws -> Refold.Counts {
      let tables = try TableCatalog(database.configuration()).storedTables(over: run.eye)
      return try Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
        .refoldAll(over: run.eye)
    }
    let amounts = "SELECT amount, amount__text FROM salesforce.opportunity WHERE id = 'a'"
    try run.write(["a"], layout: number) { _ in [SinkRun.amount: .double(1.5)] }
    try null(number)
    try run.commit()
    // The column of numbers becomes `amount__float8`, and `amount` again by the third schema.
    try run.write(["a"], layout: text, type: "UPDATE") { _ in [SinkRun.amount: .text("one")] }
    try run.commit()
    #expect(try refold() == Refold.Counts(checked: 2, changed: 0))
    try null(text)
    try run.write(["a"], layout: again, type: "UPDATE") { _ in [SinkRun.amount: .double(2.5)] }
    try run.commit()
    #expect(try refold() == Refold.Counts(checked: 2, changed: 0))
    // Events of the second schema, read again, name the column by its later name.
    try run.write(["a"], layout: text, type: "UPDATE") { _ in [SinkRun.amount: .text("two")] }
    try null(text)
    try run.commit()
    #expect(try run.eye.rows(amounts) == [["2.5", "-"]])
    #expect(try refold() == Refold.Counts(checked: 2, changed: 0))
    #expect(try run.eye.rows(amounts) == [["2.5", "-"]])
  }

  @Test("A rebuild of more records than one query takes, one of them twice")
  func refoldOfManyRecords() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let records = (0..<2500).map { "a\($0)" }
    try run.write(records) { _ in [SinkRun.amount: .double(1.5)] }
    try run.commit()
    try run.eye.execute("UPDATE salesforce.opportunity SET amount = 2.5")
    let tables = try TableCatalog(database.configuration()).storedTables(over: run.eye)
    let refold = Refold(
      history: tables[0].history, current: tables[0].current, delete: .mark)
    #expect(
      try refold.refoldAlone(records: records + ["a0", "none"], over: run.eye)
        == Refold.Counts(checked: 2500, changed: 2500))
    #expect(
      try run.eye.column("SELECT DISTINCT amount FROM salesforce.opportunity WHERE id <> 'first'")
        == ["1.5"])
  }

  @Test("A column altered by hand stops the run, and its rows do not become dead letters")
  func alteredByHand() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.write(["a"])
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ALTER name TYPE date USING NULL")
    let error = postgresError { try run.commit() }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("\"name\"") == true, "\(error?.message ?? "")")
    #expect(run.refused.isEmpty)
  }

  @Test("Readers that lock a view do not delay loading")
  func lockedView() async throws {
    let database = try await TestDatabase()
    try SinkRun(database).begin().sink.close()
    let run = try SinkRun(database, ordinal: 1) { $0.connection.lockTimeout = .milliseconds(1) }
    let reader = try database.connect()
    try reader.execute("BEGIN; SELECT * FROM salesforce._freshness, salesforce.opportunity_live")
    try run.sink.open()
    let wider = SinkRun.layout(schemaID: "schema-2", [Column("Stage", 3, .string)])
    // The reader's lock on the table itself has to go for a column to be added.
    try run.write(["a"])
    try run.commit()
    try reader.execute("COMMIT")
    try run.write(["b"], layout: wider) { _ in [SinkRun.amount + 1: .text("won")] }
    try run.commit()
    #expect(try run.history() == ["first", "a", "b"])
    #expect(
      try run.eye.rows("SELECT id, stage FROM salesforce.opportunity_live ORDER BY 1").last
        == ["first", "-"])
  }

  // MARK: Permissions

  @Test("A role needs to own nothing but its schema")
  func modestRole() async throws {
    let database = try await TestDatabase()
    let eye = try database.connect()
    let role = "loader_\(database.name)"
    try eye.execute(
      """
      CREATE ROLE \(role) LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC; \
      CREATE SCHEMA salesforce AUTHORIZATION \(role)
      """)
    let url = "postgresql://\(role)@127.0.0.1:\(database.cluster.port)/\(database.name)"
    let run = try SinkRun(database, url: url).begin()
    try run.write(["a"], type: "UPDATE")
    try run.commit()
    #expect(try run.history() == ["first", "a"])
    #expect(
      try eye.column("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'salesforce'")
        == [role])
  }

  @Test("The error names a missing right to create temporary tables or a schema")
  func missingRights() async throws {
    let database = try await TestDatabase()
    let eye = try database.connect()
    let role = "loader_\(database.name)"
    try eye.execute("CREATE ROLE \(role) LOGIN")
    let url = "postgresql://\(role)@127.0.0.1:\(database.cluster.port)/\(database.name)"
    let run = try SinkRun(database, url: url)
    let schema = postgresError { try run.sink.open(creating: [:]) }
    #expect(schema?.disposition == .refused)
    #expect(schema?.message.contains("CREATE SCHEMA") == true, "\(schema?.message ?? "")")
    try eye.execute(
      """
      CREATE SCHEMA salesforce AUTHORIZATION \(role); \
      REVOKE TEMPORARY ON DATABASE \(database.name) FROM PUBLIC
      """)
    let temporary = postgresError {
      try run.sink.open(creating: [:])
      try run.write(["a"], type: "UPDATE")
      try run.commit()
    }
    #expect(temporary?.disposition == .refused)
    #expect(temporary?.message.contains("temporary tables") == true, "\(temporary?.message ?? "")")
    try eye.execute("GRANT TEMPORARY ON DATABASE \(database.name) TO \(role)")
    try run.commit()
    #expect(try run.history() == ["a"])
  }
}
