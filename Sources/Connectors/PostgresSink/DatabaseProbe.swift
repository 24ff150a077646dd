package import PostgresClient

/// Whether a sink can write to a database, and what prevents it.
package struct DatabaseProbe {
  let connection: PostgresConnection
  private let configuration: PostgresSinkConfiguration
  var schema: String { self.configuration.schema }
  /// For example, `15.4`.
  package var serverVersion: String
  package var database: String
  package var role: String
  package var hasSchema: Bool
  /// The role may create tables in the schema, or the schema itself if it does not exist.
  package var mayCreate: Bool
  /// The server is a standby, or is configured so.
  package var isReadOnly: Bool
  /// Why the encoding of the database matters; nil for UTF8.
  package var encodingConcern: String?
  /// Schemas whose names differ from the configured one only in case.
  private(set) var namesakes: [String] = []
  /// The sink's tables and views that the role does not own.
  private(set) var ownerships: [Ownership] = []
  /// The role owns some of them, itself or as a member of their owner.
  private(set) var ownsTables = false
  /// All owners in `ownerships` are superusers.
  private(set) var ownersAreSuperusers = true
  /// All of them are allowed to log in.
  private(set) var ownersMayLogIn = true
  /// All of the sink's own tables exist, so nothing has to be created before the first row.
  package var hasBookkeeping = false
  /// Statements that grant missing privileges on existing objects.
  package var missingGrants: [String] = []

  /// Connects and queries the database; changes nothing.
  package init(_ configuration: PostgresSinkConfiguration) throws(PostgresError) {
    let connection = try PostgresConnection(configuration.connection.brief)
    self.connection = connection
    self.configuration = configuration
    let result = try connection.query(
      """
      SELECT current_setting('server_version'), current_database(), current_user, n.oid IS NOT NULL,
        CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
        ELSE has_schema_privilege(n.oid, 'CREATE') END,
        current_setting('transaction_read_only') = 'on',
        has_database_privilege(current_database(), 'TEMPORARY'),
        n.oid IS NULL OR has_schema_privilege(n.oid, 'USAGE')
      FROM (VALUES (1)) AS one LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
      """, [configuration.schema])
    self.serverVersion = result[0, 0] ?? ""
    self.database = result[0, 1] ?? ""
    self.role = result[0, 2] ?? ""
    self.hasSchema = result[0, 3] == "t"
    self.mayCreate = result[0, 4] == "t"
    self.isReadOnly = result[0, 5] == "t"
    self.encodingConcern = DatabaseEncoding.concern(connection)
    if self.isReadOnly, let setting = try ReadOnlySetting(over: connection) { throw setting.error }
    let role = SQLIdentifier.quoted(self.role)
    if result[0, 6] != "t" {
      self.missingGrants.append(
        "GRANT TEMPORARY ON DATABASE \(SQLIdentifier.quoted(self.database)) TO \(role)")
    }
    if result[0, 7] != "t" {
      self.missingGrants.append(
        "GRANT USAGE ON SCHEMA \(SQLIdentifier.quoted(configuration.schema)) TO \(role)")
    }
    if !self.hasSchema {
      let namesakes = try connection.query(
        "SELECT nspname FROM pg_catalog.pg_namespace WHERE lower(nspname) = lower($1) ORDER BY 1",
        [configuration.schema])
      self.namesakes = (0..<namesakes.rowCount).compactMap { namesakes[$0, 0] }
    } else {
      try connection.quickly { () throws(PostgresError) in
        try self.readPrivileges(configuration, over: connection)
      }
    }
    try connection.checkAnswers()
  }

  /// Covers the sink's own tables, their sequences, and the tables that it created, as far as they
  /// can be read.
  private mutating func readPrivileges(
    _ configuration: PostgresSinkConfiguration, over connection: PostgresConnection
  ) throws(PostgresError) {
    // The privileges that runs need on existing tables; creating and altering tables is checked
    // elsewhere.
    let removes = configuration.delete == .remove
    let changing = removes ? "SELECT, INSERT, UPDATE, DELETE" : "SELECT, INSERT, UPDATE"
    var wanted = [
      "_etl_checkpoint": "SELECT, INSERT, UPDATE", "_etl_table": "SELECT", "_etl_column": "SELECT",
      "_etl_journal": "SELECT, INSERT", "_etl_resync": "SELECT, INSERT, UPDATE",
      "_etl_tombstone": removes ? changing : "SELECT",
    ]
    wanted[RunTable.name] = "SELECT, INSERT, DELETE"
    for name in Bookkeeping.readNames { wanted[name] = "SELECT, INSERT, UPDATE" }
    wanted[PollTable.name] = "SELECT, INSERT, UPDATE, DELETE"
    let own = try connection.query(
      """
      SELECT c.relname, has_table_privilege(c.oid, 'SELECT') FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND starts_with(c.relname, '_etl_')
      """, [configuration.schema])
    let found = Dictionary(
      (0..<own.rowCount).map { (own[$0, 0] ?? "", own[$0, 1] == "t") }, uniquingKeysWith: { $1 })
    self.hasBookkeeping = Bookkeeping.names.allSatisfy { found[$0] != nil }
    let bookkeeping = Bookkeeping(schema: configuration.schema)
    if found["_etl_table"] == true, self.missingGrants.isEmpty {
      let tables = try connection.query(
        "SELECT table_name, kind FROM \(bookkeeping.qualified("_etl_table"))")
      for row in 0..<tables.rowCount {
        guard let name = tables[row, 0] else { continue }
        let isHistory = tables[row, 1] == TableDefinition.Kind.history.rawValue
        wanted[name] = isHistory ? "SELECT, INSERT" : changing
      }
    }
    let relations = try connection.query(
      """
      SELECT c.relname, c.relkind,
        has_any_column_privilege(c.oid, 'SELECT'), has_any_column_privilege(c.oid, 'INSERT'),
        has_any_column_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
        CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, 'USAGE') END,
        pg_has_role(c.relowner, 'USAGE'), pg_has_role(n.nspowner, 'USAGE'),
        (SELECT count(*) = 2 FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid
          AND a.attname IN ('_epoch', '_ordinal') AND NOT a.attisdropped),
        o.rolname, o.rolsuper, o.rolcanlogin
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_roles AS o ON o.oid = c.relowner
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'S', 'v') ORDER BY c.relname
      """, [configuration.schema])
    let role = SQLIdentifier.quoted(self.role)
    var tables: Set<String> = [ReportingViews.freshnessName, ReportingViews.columnsName]
    for row in 0..<relations.rowCount where relations[row, 9] == "t" && relations[row, 1] != "v" {
      // Its columns tell a table of the sink, whatever may be read of the list of tables.
      tables.formUnion(
        relations[row, 0].map { name in
          [name] + ReportingViews.names(name)
        } ?? [])
    }
    for row in 0..<relations.rowCount {
      guard let name = relations[row, 0], let kind = relations[row, 1] else { continue }
      // Sequences follow their tables.
      if kind != "S", name.hasPrefix("_etl_") || tables.contains(name) {
        if relations[row, 7] == "t" {
          self.ownsTables = true
        } else {
          self.ownerships.append(
            Ownership(
              owner: relations[row, 10] ?? "",
              statement: "ALTER \(kind == "v" ? "VIEW" : "TABLE") \(bookkeeping.qualified(name)) "
                + "OWNER TO \(role)"))
          if relations[row, 11] != "t" { self.ownersAreSuperusers = false }
          if relations[row, 12] != "t" { self.ownersMayLogIn = false }
        }
      }
      if kind == "v" { continue }
      if relations[row, 1] == "S" {
        guard name.hasPrefix("_etl_"), relations[row, 6] != "t" else { continue }
        self.missingGrants.append(
          "GRANT USAGE ON SEQUENCE \(bookkeeping.qualified(name)) TO \(role)")
      } else if let privileges = wanted[name] {
        let held = ["SELECT", "INSERT", "UPDATE", "DELETE"].enumerated().filter {
          relations[row, 2 + $0.offset] == "t"
        }.map(\.element)
        let needed = privileges.split(separator: ", ").map(String.init)
        guard !needed.allSatisfy(held.contains) else { continue }
        self.missingGrants.append(
          "GRANT \(privileges) ON \(bookkeeping.qualified(name)) TO \(role)")
      }
    }
    guard let first = self.ownerships.first, !self.ownsTables || !self.mayCreate,
      relations[0, 8] != "t"
    else { return }
    self.ownerships.insert(
      Ownership(
        owner: first.owner,
        statement: "ALTER SCHEMA \(SQLIdentifier.quoted(configuration.schema)) OWNER TO \(role)"),
      at: 0)
  }

  /// Manual changes of the tables.
  ///
  /// - Throws: `PostgresError` (configuration) when another pipeline or topic feeds them.
  package func tables(_ feeder: TableFeeder) throws(PostgresError) -> [TableFinding] {
    let catalog = TableCatalog(self.configuration, feeder: feeder)
    let findings = try self.connection.quickly { () throws(PostgresError) in
      try catalog.checkFeeds(over: self.connection)
      return try catalog.survey(over: self.connection)
    }
    try self.connection.checkAnswers()
    return findings
  }
}
