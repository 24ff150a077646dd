package import PostgresClient

/// An empty database of its own on the tests' server.
package struct TestDatabase {
  package let cluster: PostgresCluster
  package let name: String

  package init() async throws { try self.init(await PostgresCluster.shared) }

  package init(_ cluster: PostgresCluster) throws {
    self.cluster = cluster
    self.name = try self.cluster.makeDatabase()
  }

  /// A database with a restored dump of another.
  package init(restored other: TestDatabase) throws {
    self.cluster = other.cluster
    self.name = try other.cluster.copyDatabase(other.name)
  }

  package var url: String { self.cluster.url(database: self.name) }

  package func connect(
    _ change: (inout PostgresConnectionConfiguration) -> Void = { _ in }
  ) throws
    -> PostgresConnection
  {
    var configuration = PostgresConnectionConfiguration(url: self.url)
    change(&configuration)
    return try PostgresConnection(configuration)
  }
}

extension PostgresConnection {
  /// All rows as text, null as `-`.
  package func rows(_ sql: String) throws -> [[String]] {
    let result = try self.query(sql)
    return (0..<result.rowCount).map { row in
      (0..<result.columnCount).map { result[row, $0] ?? "-" }
    }
  }

  package func column(_ sql: String) throws -> [String] { try self.rows(sql).map { $0[0] } }

  /// Ends the server's processes for all others in the database, and waits for their end.
  package func terminateOthers() throws {
    let others = """
      FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend'
      """
    try self.query("SELECT pg_terminate_backend(pid) \(others)")
    // The function itself waits for the end since PostgreSQL 14 only.
    while try self.query("SELECT \(others)").rowCount > 0 {}
  }
}

/// The error that `body` throws.
package func postgresError(_ body: () throws -> Void) -> PostgresError? {
  do {
    try body()
    return nil
  } catch {
    return error as? PostgresError
  }
}
