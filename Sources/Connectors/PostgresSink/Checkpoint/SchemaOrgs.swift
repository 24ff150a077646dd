internal import JSON
internal import PostgresClient

/// Tables or positions in the database belong to a different org than the login. Exit code 65.
package struct OtherOrgError: Error, Sendable, CustomStringConvertible {
  package var description: String
}

/// The orgs whose data a schema's tables hold: the orgs of its positions, or without positions the
/// org that last had some. A schema of an earlier version may have several.
struct SchemaOrgs {
  private let bookkeeping: Bookkeeping
  private var checkpoint: String { self.bookkeeping.qualified("_etl_checkpoint") }
  private var journal: String { self.bookkeeping.qualified("_etl_journal") }

  static let action = "org"

  init(_ bookkeeping: Bookkeeping) { self.bookkeeping = bookkeeping }

  /// Sorted; empty for a schema without positions that never had any.
  func read(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    let stored = try connection.query(
      "SELECT DISTINCT org FROM \(self.checkpoint) ORDER BY org")
    if stored.rowCount > 0 { return (0..<stored.rowCount).compactMap { stored[$0, 0] } }
    let noted = try connection.query(
      "SELECT detail FROM \(self.journal) WHERE action = $1 ORDER BY id DESC LIMIT 1",
      [Self.action])
    guard noted.rowCount == 1, let detail = noted[0, 0],
      let org = (try? JSONValue(parsing: detail))?["org"]?.string
    else { return [] }
    return [org]
  }

  /// - Throws: `OtherOrgError` for an org without tables in a schema that belongs to others.
  func check(_ org: String, over connection: PostgresConnection) throws {
    let known = try self.read(over: connection)
    guard !known.isEmpty, !known.contains(org) else { return }
    throw OtherOrgError(
      description:
        "postgres: the tables of schema \(self.bookkeeping.schema) hold records of org "
        + "\(known.joined(separator: ", ")), but the login is for org \(org); nothing was written")
  }

  /// Stores the org, in the open transaction, so that it is known even without positions.
  func note(
    _ org: String, pipeline: String, sink: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    let detail: JSONValue = [
      "org": .string(org), "pipeline": .string(pipeline), "sink": .string(sink),
    ]
    try connection.query(
      "INSERT INTO \(self.journal) (table_name, action, detail) VALUES ('_etl_checkpoint', $1, $2)",
      [Self.action, detail.text()])
  }
}
