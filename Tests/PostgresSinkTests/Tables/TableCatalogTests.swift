import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Table catalog", .enabled(if: PostgresCluster.isAvailable)) struct TableCatalogTests {
  private let sample = CatalogSample()

  @Test("Tables are created with types, comments, index and bookkeeping")
  func creates() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let tables = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    #expect(tables.history?.qualifiedName == "\"salesforce\".\"opportunity_history\"")
    #expect(tables.current?.name == "opportunity" && tables.columnIndices == [0, 1])
    #expect(tables.dataColumns.map(\.name) == ["stagename", "amount"])
    #expect(tables.dataColumns == tables.current?.dataColumns)
    #expect(tables.changes.count == 2)
    for table in ["salesforce.opportunity", "salesforce.opportunity_history"] {
      #expect(
        try self.sample.columns(table, connection).suffix(2) == [
          "stagename text", "amount numeric",
        ])
      #expect(
        try connection.column(
          "SELECT col_description('\(table)'::regclass, attnum) FROM pg_attribute "
            + "WHERE attrelid = '\(table)'::regclass AND attname = 'amount'") == ["Data:Currency"])
    }
    for kind in TableDefinition.Kind.allCases {
      let name = kind == .history ? "opportunity_history" : "opportunity"
      let columns = try connection.column(
        "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid "
          + "= 'salesforce.\(name)'::regclass AND attnum > 0 ORDER BY attnum")
      let fixed = TableDefinition.allFixedColumns(kind).map {
        "\($0.name) \($0.sqlType)"
      }
      let key = kind == .current ? fixed.prefix(1) : []
      // The record and its fields before the program's own columns.
      #expect(
        columns == key + ["stagename text", "amount numeric"] + fixed.dropFirst(key.count))
    }
    #expect(
      try connection.column(
        "SELECT substring(indexdef from '\\(.*') FROM pg_indexes WHERE tablename = 'opportunity_history' ORDER BY 1"
      ) == ["(_commit_timestamp)", "(_record_id, _event_id)"])
    #expect(
      try connection.rows("SELECT * FROM salesforce._etl_table ORDER BY 1")
        == [
          ["opportunity", "Opportunity", "current"],
          ["opportunity_history", "Opportunity", "history"],
        ])
    #expect(
      try connection.rows(
        """
        SELECT table_name, column_name, ordinal, path, salesforce_type, pg_type, first_schema_id, \
        state FROM salesforce._etl_column WHERE table_name = 'opportunity' ORDER BY ordinal
        """)
        == [
          [
            "opportunity", "stagename", "1", "StageName", "Data:DynamicEnum", "text", "schema-1",
            "complete",
          ],
          [
            "opportunity", "amount", "2", "Amount", "Data:Currency", "numeric", "schema-1",
            "complete",
          ],
        ])
    #expect(
      try connection.column("SELECT action FROM salesforce._etl_journal ORDER BY id")
        == ["create_table", "create_table", "schema", "schema"])
  }

  @Test("New tables get an index on the configured columns, current tables first")
  func indexes() async throws {
    for mode in PostgresSinkConfiguration.Mode.allCases {
      let database = try await TestDatabase()
      let connection = try database.connect()
      let configuration = database.configuration {
        $0.mode = mode
        $0.indexes = ["Opportunity.StageName", "amount", "Account.Name", "Later__c"]
      }
      let catalog = TableCatalog(configuration)
      let plan = try catalog.plan([self.sample.layout()], over: connection)
      let table = mode == .history ? "opportunity_history" : "opportunity"
      for column in ["stagename", "amount"] {
        #expect(plan.sql.contains("CREATE INDEX ON \"salesforce\".\"\(table)\" (\"\(column)\");"))
      }
      #expect(!plan.sql.contains("later__c"))
      _ = try catalog.tables(for: self.sample.layout(), over: connection)
      // A table that is there is left alone.
      let wider = self.sample.layout([Column("Later__c", 2, .string)], schemaID: "schema-2")
      #expect(try !catalog.plan([wider], over: connection).sql.contains("CREATE INDEX"))
      #expect(
        try connection.column(
          "SELECT indexdef FROM pg_indexes WHERE schemaname = 'salesforce' AND indexdef ~ '(amount|stagename)' ORDER BY 1"
        ).map { String($0.split(separator: " ").last ?? "") } == ["(amount)", "(stagename)"])
    }
  }

  @Test(
    "The entry lookups gives all columns with IDs of other records an index")
  func lookups() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration { $0.indexes = ["lookups"] })
    let columns = [
      Column("AccountId", 2, .string, salesforceType: "ForeignKey:EntityId"),
      Column("Owner__c", 3, .string, salesforceType: "ForeignKey:EntityId"),
      Column("EntityIdText__c", 4, .string, salesforceType: "Data:Text"),
    ]
    _ = try catalog.tables(for: self.sample.layout(columns), over: connection)
    let indexed = try connection.column(
      "SELECT indexdef FROM pg_indexes WHERE schemaname = 'salesforce' AND indexdef ~ '(account|owner|text)' ORDER BY 1"
    ).map { String($0.split(separator: " ").last ?? "") }
    #expect(indexed == ["(accountid)", "(owner__c)"])
  }

  @Test("A second run over the same schema changes nothing, in this process or another")
  func idempotent() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    var first = try catalog.tables(for: self.sample.layout(), over: connection)
    let journal = try connection.column("SELECT count(*) FROM salesforce._etl_journal")
    first.changes = []
    #expect(try catalog.tables(for: self.sample.layout(), over: connection) == first)
    #expect(
      try TableCatalog(database.configuration()).tables(for: self.sample.layout(), over: connection)
        == first)
    #expect(try connection.column("SELECT count(*) FROM salesforce._etl_journal") == journal)
  }

  @Test("A record that is not flattened is noted once, also for an existing column")
  func notesCompounds() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let address = Column(
      name: "Address", path: ["Address"],
      content: .record(slot: 2, scalar: nil, children: [Column("City", 3, .string)]))
    let catalog = TableCatalog(database.configuration())
    let layout = self.sample.layout([address, Column("Tags", 4, .json)])
    let tables = try catalog.tables(for: layout, over: connection)
    #expect(tables.dataColumns.map(\.isCompound) == [false, false, true, false])
    let notes =
      "SELECT table_name, detail FROM salesforce._etl_journal WHERE action = 'compound' ORDER BY 1"
    let expected = [
      ["opportunity", "Address as jsonb"], ["opportunity_history", "Address as jsonb"],
    ]
    #expect(try connection.rows(notes) == expected)
    #expect(
      try catalog.storedTables(over: connection)[0].current.dataColumns == tables.dataColumns)
    // As an earlier version has left it: its notes are made up for when a schema comes again.
    try connection.execute("DELETE FROM salesforce._etl_journal WHERE action = 'compound'")
    #expect(
      try catalog.storedTables(over: connection)[0].history.dataColumns.allSatisfy {
        !$0.isCompound
      })
    for _ in 0..<2 { _ = try catalog.tables(for: layout, over: connection) }
    #expect(try connection.rows(notes) == expected)
  }

  @Test("A new type takes the name, the old column is kept, and older schemas still find it")
  func typeChange() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    let old = self.sample.layout()
    _ = try catalog.tables(for: old, over: connection)
    try connection.execute(
      "INSERT INTO salesforce.opportunity (id, _epoch, _ordinal, amount) VALUES ('1', 1, 1, 12.5)")
    let new = RecordLayout.test(
      [Column("StageName", 0, .string), Column("Amount", 1, .string)], schemaID: "schema-2")
    let changed = try catalog.tables(for: new, over: connection)
    #expect(changed.dataColumns.map(\.name) == ["stagename", "amount__numeric", "amount"])
    #expect(changed.dataColumns.map(\.type) == [.text, .numeric, .text])
    #expect(changed.columnIndices == [0, 2] && !changed.changes.isEmpty)
    #expect(
      try connection.rows("SELECT amount__numeric, amount FROM salesforce.opportunity") == [
        ["12.5", "-"]
      ])
    // Re-read events of the first schema do not change it back.
    let reread = try catalog.tables(for: old, over: connection)
    #expect(reread.columnIndices == [0, 1] && reread.changes.isEmpty)
    // A third schema does, and gets its old column again.
    let back = try catalog.tables(for: self.sample.layout(schemaID: "schema-3"), over: connection)
    #expect(back.dataColumns.map(\.name) == ["stagename", "amount", "amount__text"])
    #expect(
      back.dataColumns.map(\.type) == [.text, .numeric, .text] && back.columnIndices == [0, 1])
    #expect(
      try connection.rows("SELECT amount, amount__text FROM salesforce.opportunity") == [
        ["12.5", "-"]
      ])
    #expect(try catalog.tables(for: new, over: connection).columnIndices == [0, 2])
    #expect(
      try TableCatalog(database.configuration()).tables(for: new, over: connection).columnIndices
        == [0, 2])
    // Yet another type, whose old name is taken.
    try connection.execute("ALTER TABLE salesforce.opportunity ADD COLUMN \"amount__numeric\" int")
    let number = RecordLayout.test([Column("Amount", 0, .int64)], schemaID: "schema-4")
    let third = try catalog.tables(for: number, over: connection)
    #expect(
      third.dataColumns.map(\.name) == ["stagename", "amount__numeric_2", "amount__text", "amount"])
    #expect(
      try connection.column(
        "SELECT detail FROM salesforce._etl_journal WHERE action = 'rename_column' AND table_name = 'opportunity' ORDER BY id"
      )
        == [
          "amount to amount__numeric", "amount to amount__text", "amount__numeric to amount",
          "amount to amount__numeric_2",
        ])
  }

  @Test("A stale long text stays marked under its column's new name")
  func staleFieldOfChangedType() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    try catalog.prepare(over: connection)
    let text = RecordLayout.test([Column("Description", 0, .string)])
    _ = try catalog.tables(for: text, over: connection)
    try connection.execute(
      """
      INSERT INTO salesforce.opportunity (id, _epoch, _ordinal, _stale_fields) VALUES
      ('1', 1, 1, '{description,other}'), ('2', 1, 2, '{other}'), ('3', 1, 3, NULL)
      """)
    let number = RecordLayout.test([Column("Description", 0, .int64)], schemaID: "schema-2")
    _ = try catalog.tables(for: number, over: connection)
    #expect(
      try connection.rows("SELECT id, _stale_fields FROM salesforce.opportunity ORDER BY id") == [
        ["1", "{description__text,other}"], ["2", "{other}"], ["3", "-"],
      ])
  }

  @Test("A table that is added later for another mode has the first table's columns, in order")
  func modeChange() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let history = TableCatalog(database.configuration { $0.mode = .history })
    _ = try history.tables(
      for: self.sample.layout([Column("Gone__c", 2, .boolean)]), over: connection)
    let text = RecordLayout.test([Column("Amount", 0, .string)], schemaID: "schema-2")
    _ = try history.tables(for: text, over: connection)
    let both = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout([Column("Later__c", 2, .int32)], schemaID: "schema-3"),
      over: connection)
    let names = ["stagename", "amount", "gone__c", "amount__text", "later__c"]
    #expect(both.dataColumns.map(\.name) == names)
    #expect(both.history?.dataColumns == both.current?.dataColumns)
    #expect(
      Set(
        try self.sample.columns("salesforce.opportunity", connection).map {
          String($0.split(separator: " ")[0])
        }) == Set(names + ["id"]))
    let again = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    #expect(again.dataColumns.map(\.name) == names && again.changes.isEmpty)
  }

  @Test("A plan equals what is then executed, and changes nothing by itself")
  func plans() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    let wider = self.sample.layout([Column("New__c", 2, .boolean)], schemaID: "schema-2")
    let plan = try catalog.plan([self.sample.layout(), wider], over: connection).sql
    #expect(plan.contains("ADD COLUMN \"new__c\" boolean"))
    #expect(
      try connection.column("SELECT count(*) FROM pg_namespace WHERE nspname = 'salesforce'") == [
        "0"
      ])
    try connection.execute(plan)
    #expect(try catalog.plan([self.sample.layout(), wider], over: connection).sql == "")
    let tables = try catalog.tables(for: wider, over: connection)
    #expect(tables.changes.isEmpty && tables.columnIndices == [0, 1, 2])
  }

  @Test("A role that owns its schema can create the tables")
  func restrictedRole() async throws {
    let database = try await TestDatabase()
    let owner = try database.connect()
    let role = "loader_\(database.name)"
    try owner.execute(
      "CREATE ROLE \(role) LOGIN; CREATE SCHEMA salesforce AUTHORIZATION \(role); "
        + "REVOKE ALL ON SCHEMA public FROM PUBLIC; REVOKE CREATE ON DATABASE \(database.name) FROM PUBLIC"
    )
    let connection = try PostgresConnection(
      .init(
        url: "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"))
    let catalog = TableCatalog(database.configuration())
    #expect(try catalog.tables(for: self.sample.layout(), over: connection).changes.count == 2)
    let wider = self.sample.layout([Column("New__c", 2, .boolean)], schemaID: "schema-2")
    #expect(try catalog.tables(for: wider, over: connection).changes.count == 2)
    let elsewhere = TableCatalog(database.configuration { $0.schema = "other" })
    let refused = postgresError {
      _ = try elsewhere.tables(for: self.sample.layout(), over: connection)
    }
    #expect(refused?.sqlState == "42501" && refused?.disposition == .refused)
  }

  @Test("Many processes that create the same tables at once agree")
  func races() async throws {
    let database = try await TestDatabase()
    let url = database.url
    let layouts = (0..<4).map { index in
      self.sample.layout([Column("Field\(index)__c", 2, .int32)], schemaID: "schema-\(index)")
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<8 {
        group.addTask {
          let configuration = PostgresSinkConfiguration(connection: .init(url: url))
          let connection = try PostgresConnection(configuration.connection)
          let catalog = TableCatalog(configuration)
          for step in 0..<4 {
            _ = try catalog.tables(for: layouts[(index + step) % 4], over: connection)
          }
        }
      }
      try await group.waitForAll()
    }
    let connection = try database.connect()
    let orders = try connection.column(
      "SELECT string_agg(column_name, ' ' ORDER BY ordinal) FROM salesforce._etl_column GROUP BY table_name"
    )
    #expect(orders.count == 2 && orders[0] == orders[1])
    #expect(orders[0].split(separator: " ").count == 6)
  }

  @Test("The wait for a locked table ends at the lock timeout")
  func lockTimeout() async throws {
    let database = try await TestDatabase()
    let (connection, holder) = (
      try database.connect { $0.lockTimeout = .milliseconds(20) }, try database.connect()
    )
    let catalog = TableCatalog(database.configuration())
    _ = try catalog.tables(for: self.sample.layout(), over: connection)
    try holder.execute("BEGIN")
    try holder.execute("SELECT * FROM salesforce.opportunity")
    let wider = self.sample.layout([Column("New__c", 2, .boolean)], schemaID: "schema-2")
    let error = postgresError { _ = try catalog.tables(for: wider, over: connection) }
    #expect(error?.sqlState == "55P03" && error?.disposition == .retry)
    #expect(connection.transactionStatus == .idle)
    try holder.execute("COMMIT")
    #expect(try catalog.tables(for: wider, over: connection).columnIndices == [0, 1, 2])
  }
}
