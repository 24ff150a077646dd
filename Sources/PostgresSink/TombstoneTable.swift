/// Keys of records whose rows have been removed, so that a late change does not bring them back.
enum TombstoneTable {
  static let columns = "entity, id, epoch, ordinal, commit_timestamp"
  static let onConflict = """
    ON CONFLICT (entity, id) DO UPDATE SET epoch = excluded.epoch, ordinal = excluded.ordinal, \
    commit_timestamp = excluded.commit_timestamp
    """

  static func qualifiedName(schema: String) -> String {
    Bookkeeping(schema: schema).qualified("_etl_tombstone")
  }
}
