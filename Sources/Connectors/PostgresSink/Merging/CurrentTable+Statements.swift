internal import PostgresClient

extension CurrentTable {
  /// The SQL for one state of the table; `t` is the current table, `d` the deltas, `x` the
  /// tombstones.
  struct Statements {
    /// Returns how many deltas were applied.
    let apply: String
    /// Selects records whose rows or tombstones are later than their deltas.
    let late: String
    /// The rows of some IDs, for FROM: a search by key for each.
    let rows: String
    /// Selects those of some IDs that have a row or tombstone, and NULL if row-level security
    /// prevents COPY.
    let known: String
    /// Selects for some IDs: ID, epoch, ordinal, commit time in milliseconds since 1970.
    let positions: String
    /// Returns how many rows were made, changed or removed.
    let applyRebuilt: String
    /// Selects for those of some IDs that have a row or tombstone: ID, stamp, whether the row is
    /// stale or partial, last commit, last change of the row, last read, whether the record exists;
    /// times are milliseconds since 1970. And NULL, as in `known`.
    let reads: String
    /// Selects for those of some IDs whose rows have a stamp: ID, stamp.
    let stamps: String

    private typealias Flags = DeltaTable.Flags

    init(_ table: TableDefinition, removesDeleted: Bool, maskCount: Int) {
      let name = table.qualifiedName
      let delta = DeltaTable.name
      let tombstones = Tombstones.qualifiedName(schema: table.schema)
      let entity = SQLIdentifier.literal(table.entity)
      let isTombstoned = "x.entity = \(entity) AND x.id = d.id"
      let isEarlier = "(t._epoch, t._ordinal) < (d._first_epoch, d._first_ordinal)"
      let data = table.dataColumns.map(\.quotedName)

      let patched = table.dataColumns.indices.map { index in
        "CASE WHEN \(DeltaTable.holds(index)) THEN d.\(data[index]) ELSE t.\(data[index]) END"
      }
      let staleFields = Self.staleFields(table, maskCount: maskCount)
      let set =
        Self.copied.map { "\($0) = d.\($0)" } + [
          """
          _deleted_at = CASE WHEN \(Self.has(.deletedSet)) THEN d._deleted_at \
          WHEN \(Self.has(.deletedCleared)) THEN NULL ELSE t._deleted_at END
          """,
          """
          _stale = CASE WHEN \(Self.has(.staleSet)) THEN true \
          WHEN \(Self.has(.staleCleared)) THEN false ELSE t._stale END
          """,
          """
          _partial = CASE WHEN \(Self.has(.replacement)) THEN \(Self.has(.partial)) \
          ELSE t._partial END
          """,
          "_stale_fields = \(staleFields)", "_updated_at = now()",
        ]
        + (table.hasReadColumns
          ? ["_system_modstamp = d._system_modstamp", "_read_at = \(Self.readAt)"] : [])
        + zip(data, patched).map { "\($0) = \($1)" }
      let readColumns = table.hasReadColumns ? TableDefinition.readColumns.map(\.name) : []
      let columns =
        ["id"] + Self.copied + ["_deleted_at", "_stale", "_partial", "_stale_fields"]
        + readColumns + data
      let values =
        ["d.id"] + Self.copied.map { "d.\($0)" } + [
          "d._deleted_at", Self.has(.staleSet),
          Self.isPartial, "d._stale_added",
        ] + readColumns.map { "d.\($0)" } + data.map { "d.\($0)" }
      let isMissing = "NOT EXISTS (SELECT FROM \(name) AS t WHERE t.id = d.id)"
      let isKept = removesDeleted ? " AND NOT \(Self.has(.removed))" : ""

      var parts = [
        """
        updated AS (UPDATE \(name) AS t SET \(set.joined(separator: ", ")) FROM \(delta) AS d \
        WHERE t.id = d.id AND \(isEarlier)\(isKept) RETURNING 1)
        """
      ]
      let insert = """
        INSERT INTO \(name) (\(columns.joined(separator: ", "))) \
        SELECT \(values.joined(separator: ", ")) FROM \(delta) AS d WHERE \(isMissing)\(isKept)
        """
      var sum = "(SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted)"
      if removesDeleted {
        let isLaterTombstone = "(x.epoch, x.ordinal) >= (d._first_epoch, d._first_ordinal)"
        parts += [
          """
          inserted AS (\(insert) AND NOT EXISTS (SELECT FROM \(tombstones) AS x \
          WHERE \(isTombstoned) AND (NOT \(Self.has(.revived)) OR \(isLaterTombstone))) RETURNING 1)
          """,
          """
          revived AS (DELETE FROM \(tombstones) AS x USING \(delta) AS d WHERE \(isTombstoned) \
          AND NOT \(Self.has(.removed)) AND \(Self.has(.revived)) AND NOT \(isLaterTombstone))
          """,
          """
          removed AS (DELETE FROM \(name) AS t USING \(delta) AS d WHERE t.id = d.id \
          AND \(isEarlier) AND \(Self.has(.removed)))
          """,
          """
          buried AS (INSERT INTO \(tombstones) AS x (\(Tombstones.columns)) \
          SELECT \(entity), d.id, d._epoch, d._ordinal, d._deleted_at FROM \(delta) AS d \
          WHERE \(Self.has(.removed)) AND NOT EXISTS (SELECT FROM \(name) AS t WHERE t.id = d.id \
          AND NOT \(isEarlier)) \(Tombstones.onConflict) \
          WHERE (x.epoch, x.ordinal) < (excluded.epoch, excluded.ordinal) RETURNING 1)
          """,
        ]
        sum += " + (SELECT count(*) FROM buried)"
      } else {
        parts.append("inserted AS (\(insert) RETURNING 1)")
      }
      self.apply = "WITH \(parts.joined(separator: ", ")) SELECT \(sum)"

      let laterTombstone =
        removesDeleted
        ? """
         UNION SELECT d.id FROM \(delta) AS d JOIN \(tombstones) AS x ON \(isTombstoned) \
        WHERE (x.epoch, x.ordinal) > (d._epoch, d._ordinal)
        """ : ""
      self.late = """
        SELECT d.id FROM \(delta) AS d JOIN \(name) AS t ON t.id = d.id \
        WHERE (t._epoch, t._ordinal) <> (d._epoch, d._ordinal)\(laterTombstone)
        """
      // For `id = ANY`, the planner often scans the complete table.
      let among = "unnest($1::text[]) AS u (_etl_key), LATERAL"
      self.rows = "\(among) (SELECT * FROM \(name) WHERE id = u._etl_key OFFSET 0) AS t"
      let buried = """
        \(among) (SELECT * FROM \(tombstones) WHERE entity = \(entity) AND id = u._etl_key OFFSET 0) AS x
        """
      self.known =
        "SELECT id FROM \(rows)"
        + (removesDeleted ? " UNION ALL SELECT id FROM \(buried)" : "")
        + " UNION ALL SELECT NULL WHERE row_security_active(\(SQLIdentifier.literal(name))::regclass::oid)"
      // A record deleted at an unknown time has the tombstone of `-infinity`.
      let milliseconds = "CASE WHEN isfinite(%) THEN (extract(epoch FROM %) * 1000)::bigint END"
      self.positions =
        """
        SELECT id, _epoch, _ordinal, \(milliseconds.replacing("_commit_timestamp")) FROM \(rows)
        """
        + (removesDeleted
          ? """
           UNION ALL SELECT id, epoch, ordinal, \(milliseconds.replacing("commit_timestamp")) \
          FROM \(buried)
          """ : "")
      let stamp = milliseconds.replacing("_system_modstamp")
      self.reads =
        """
        SELECT id, \(stamp), _stale OR _partial, \(milliseconds.replacing("_commit_timestamp")), \
        \(milliseconds.replacing("_updated_at")), \(milliseconds.replacing("_read_at")), \
        _deleted_at IS NULL FROM \(rows)
        """
        + (removesDeleted
          ? """
           UNION ALL SELECT id, NULL, true, \(milliseconds.replacing("commit_timestamp")), NULL, NULL, \
          false FROM \(buried)
          """ : "")
          + """
           UNION ALL SELECT NULL, NULL, true, NULL, NULL, NULL, NULL \
          WHERE row_security_active(\(SQLIdentifier.literal(name))::regclass::oid)
          """
      self.stamps =
        "SELECT id, \(stamp) FROM \(rows) WHERE _system_modstamp IS NOT NULL"
      // A read of today has no value for a field of yesterday, which is kept.
      let gone = table.hasReadColumns ? table.goneColumns : []
      let rebuilt = zip(table.dataColumns, patched).map { column, value in
        gone.contains(column.name)
          ? "CASE WHEN d._read_at IS NULL THEN \(value) ELSE coalesce(\(value), t.\(column.quotedName)) END"
          : value
      }
      self.applyRebuilt = Self.rebuilt(
        table, columns: columns, values: values,
        updates: values.dropLast(data.count) + rebuilt, removesDeleted: removesDeleted)
    }

    private static func rebuilt(
      _ table: TableDefinition, columns: [String], values: [String], updates: [String],
      removesDeleted: Bool
    ) -> String {
      let name = table.qualifiedName
      let delta = DeltaTable.name
      let tombstones = Tombstones.qualifiedName(schema: table.schema)
      let entity = SQLIdentifier.literal(table.entity)
      let pairs = zip(columns, updates).dropFirst()
      let isKept = removesDeleted ? " AND NOT \(Self.has(.removed))" : ""
      // If the history does not reach back to the record's first image, the row may know more.
      let isWorse = "\(Self.has(.beginsUnknown)) AND \(Self.has(.partial)) AND NOT t._partial"
      var parts = [
        """
        updated AS (UPDATE \(name) AS t SET _updated_at = now(), \
        \(pairs.map { "\($0) = \($1)" }.joined(separator: ", ")) FROM \(delta) AS d \
        WHERE t.id = d.id\(isKept) AND NOT (\(isWorse)) \
        AND ROW(\(pairs.map { "t.\($0.0)" }.joined(separator: ", "))) \
        IS DISTINCT FROM ROW(\(pairs.map(\.1).joined(separator: ", "))) RETURNING 1)
        """,
        """
        inserted AS (INSERT INTO \(name) (\(columns.joined(separator: ", "))) \
        SELECT \(values.joined(separator: ", ")) FROM \(delta) AS d \
        WHERE NOT EXISTS (SELECT FROM \(name) AS t WHERE t.id = d.id)\(isKept) RETURNING 1)
        """,
      ]
      var sum = "(SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted)"
      if removesDeleted {
        parts += [
          """
          revived AS (DELETE FROM \(tombstones) AS x USING \(delta) AS d \
          WHERE x.entity = \(entity) AND x.id = d.id AND NOT \(Self.has(.removed)))
          """,
          """
          removed AS (DELETE FROM \(name) AS t USING \(delta) AS d \
          WHERE t.id = d.id AND \(Self.has(.removed)) RETURNING 1)
          """,
          """
          buried AS (INSERT INTO \(tombstones) AS x (\(Tombstones.columns)) \
          SELECT \(entity), d.id, d._epoch, d._ordinal, d._deleted_at FROM \(delta) AS d \
          WHERE \(Self.has(.removed)) \(Tombstones.onConflict))
          """,
        ]
        sum += " + (SELECT count(*) FROM removed)"
      }
      return "WITH \(parts.joined(separator: ", ")) SELECT \(sum)"
    }

    /// The stale fields, without those that the deltas set and with those that they add, in the
    /// table's order.
    private static func staleFields(_ table: TableDefinition, maskCount: Int) -> String {
      guard maskCount > 0 else { return "d._stale_added" }
      let names = SQLIdentifier.literal(SQLArray.literal(table.dataColumns.map(\.name)))
      let masks = (0..<maskCount).map { "d._mask\($0)" }.joined(separator: ", ")
      let width = DeltaTable.maskWidth
      return """
        CASE WHEN t._stale_fields IS NULL OR \(Self.has(.replacement)) THEN d._stale_added \
        ELSE (SELECT array_agg(f ORDER BY n) FROM unnest(\(names)::text[]) WITH ORDINALITY \
        AS u (f, n) WHERE f = ANY (d._stale_added) OR f = ANY (t._stale_fields) \
        AND (ARRAY[\(masks)])[(n - 1) / \(width) + 1] >> ((n - 1) % \(width))::integer & 1 = 0) END
        """
    }

    /// The time of the last read. Events keep it, except full images, which replace everything that
    /// was read.
    private static let readAt =
      "CASE WHEN \(Self.has(.replacement)) THEN d._read_at ELSE coalesce(d._read_at, t._read_at) END"

    private static let isPartial = "NOT \(Self.has(.replacement)) OR \(Self.has(.partial))"
    private static func has(_ flag: Flags) -> String { "(d._flags & \(flag.rawValue) <> 0)" }

    private static let copied = [
      "_epoch", "_ordinal", "_event_id", "_change_type", "_commit_timestamp", "_commit_user",
    ]
  }
}

extension String {
  /// Replaces each `%` with an expression.
  fileprivate func replacing(_ expression: String) -> String {
    self.split(separator: "%", omittingEmptySubsequences: false).joined(separator: expression)
  }
}

/// Keeps keys of records whose rows were removed, so that a late change does not bring them back.
private enum Tombstones {
  static let columns = "entity, id, epoch, ordinal, commit_timestamp"
  static let onConflict = """
    ON CONFLICT (entity, id) DO UPDATE SET epoch = excluded.epoch, ordinal = excluded.ordinal, \
    commit_timestamp = excluded.commit_timestamp
    """

  static func qualifiedName(schema: String) -> String {
    Bookkeeping(schema: schema).qualified("_etl_tombstone")
  }
}
