internal import Pipeline
internal import PostgresClient

/// `_etl_erased`: the records whose values were erased from the tables of a schema. The first erasure
/// creates it.
struct ErasedTable {
  static let name = "_etl_erased"

  private let bookkeeping: Bookkeeping
  private var qualified: String { self.bookkeeping.qualified(Self.name) }

  init(_ bookkeeping: Bookkeeping) { self.bookkeeping = bookkeeping }

  /// Empty if the table does not exist.
  func records(over connection: PostgresConnection) throws(PostgresError) -> ErasedRecords {
    var records = ErasedRecords()
    let exists = try connection.query("SELECT to_regclass($1) IS NOT NULL", [self.qualified])
    guard exists[0, 0] == "t" else { return records }
    let rows = try connection.query("SELECT entity, record_id FROM \(self.qualified)")
    for row in 0..<rows.rowCount {
      guard let entity = rows[row, 0], let id = rows[row, 1], let record = try? RecordID(id) else {
        continue
      }
      records.insert(record, of: entity)
    }
    return records
  }

  /// Adds records within the open transaction.
  func add(
    _ records: [RecordID], of entity: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS \(self.qualified) (entity text NOT NULL, \
      record_id text PRIMARY KEY CHECK (length(record_id) = 18), \
      erased_at timestamptz NOT NULL DEFAULT now()); \
      COMMENT ON TABLE \(self.qualified) IS \
      'Records whose values were erased; later events and reads bring none back'
      """)
    try connection.query(
      """
      INSERT INTO \(self.qualified) (entity, record_id) SELECT $1, u.id \
      FROM unnest($2::text[]) AS u (id) ON CONFLICT (record_id) DO NOTHING
      """, [entity, SQLArray.literal(records.map { .some($0.description) })])
  }
}
