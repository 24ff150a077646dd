/// Keys of records whose rows have been removed, so that a late change does not bring them back.
package enum TombstoneTable {
  static let name = "_etl_tombstone"
  static let columns = "entity, id, epoch, ordinal, commit_timestamp"
  static let onConflict = """
    ON CONFLICT (entity, id) DO UPDATE SET epoch = excluded.epoch, ordinal = excluded.ordinal, \
    commit_timestamp = excluded.commit_timestamp
    """

  static func qualifiedName(schema: String) -> String {
    "\(SQLIdentifier.quoted(schema)).\(Self.name)"
  }

  package static func createStatement(schema: String) -> String {
    """
    CREATE TABLE IF NOT EXISTS \(Self.qualifiedName(schema: schema)) (entity text, id text, \
    epoch integer, ordinal bigint, commit_timestamp timestamptz, PRIMARY KEY (entity, id))
    """
  }
}
