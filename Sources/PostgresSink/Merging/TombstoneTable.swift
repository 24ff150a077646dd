/// Keys of records whose rows have been removed, so that a late change does not bring them back.
package enum TombstoneTable {
  package static let columns = "entity, id, epoch, ordinal, commit_timestamp"
  package static let onConflict = """
    ON CONFLICT (entity, id) DO UPDATE SET epoch = excluded.epoch, ordinal = excluded.ordinal, \
    commit_timestamp = excluded.commit_timestamp
    """

  package static func qualifiedName(schema: String) -> String {
    Bookkeeping(schema: schema).qualified("_etl_tombstone")
  }
}
