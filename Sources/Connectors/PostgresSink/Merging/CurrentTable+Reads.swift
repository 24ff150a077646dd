internal import PostgresClient

/// Writes records that were read.
extension CurrentTable {
  /// Copies rows of records that the table lacks directly into it.
  func copyNew(
    _ fold: RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws {
    guard !fold.deltas.isEmpty else { return }
    try self.deltas.copyDirect(fold.deltas.indices, of: fold, buffer, over: connection)
  }

  /// Replaces rows by the state that was read.
  func replace(
    _ fold: RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws {
    guard !fold.deltas.isEmpty else { return }
    try self.deltas.copy(fold.deltas.indices, of: fold, buffer, isFirst: true, over: connection)
    _ = try self.applyRebuilt(over: connection)
  }

  /// The reads whose values differ from those of the rows.
  func differing(
    _ fold: RecordFold, _ buffer: RowBuffer, columns: [Int], over connection: PostgresConnection
  ) throws -> Set<String> {
    guard !fold.deltas.isEmpty, !columns.isEmpty else { return [] }
    try self.copyDeltas(of: fold, buffer, over: connection)
    let result = try connection.query(
      """
      SELECT d.id FROM \(DeltaTable.name) AS d JOIN \(self.definition.qualifiedName) AS t \
      ON t.id = d.id WHERE \(self.differs(columns) { _ in "false" })
      """)
    return Set((0..<result.rowCount).compactMap { result[$0, 0] })
  }

  /// Sets the columns that were read in rows of existing records, except those that an event sets
  /// which the read may not contain. Everything else in the rows stays.
  ///
  /// - Parameters:
  ///   - events: a table of events, in the columns of a history.
  ///   - history: nil without one.
  /// - Returns: IDs of the changed rows, and of those in `unproved(_:by:over:)`.
  func fill(
    _ fold: RecordFold, _ buffer: RowBuffer, columns: [Int], events: TableDefinition,
    history: TableDefinition?, visibilityWait: Int64, over connection: PostgresConnection
  ) throws -> (changed: Set<String>, unproved: Set<String>) {
    guard !fold.deltas.isEmpty, !columns.isEmpty else { return ([], []) }
    try self.copyDeltas(of: fold, buffer, over: connection)
    let unproved = try history.map { try self.unproved(columns, by: $0, over: connection) } ?? []
    func isLater(_ column: Int) -> String {
      "\(SQLIdentifier.literal(self.definition.dataColumns[column].name)) = ANY (l.names)"
    }
    let set = columns.map { column in
      let name = self.definition.dataColumns[column].quotedName
      return "\(name) = CASE WHEN \(DeltaTable.holds(column)) AND NOT \(isLater(column)) "
        + "THEN d.\(name) ELSE t.\(name) END"
    }
    let names = SQLIdentifier.literal(
      SQLArray.literal(columns.map { self.definition.dataColumns[$0].name }))
    let result = try connection.query(
      """
      UPDATE \(self.definition.qualifiedName) AS t SET \(set.joined(separator: ", ")), \
      _stale_fields = CASE WHEN t._stale_fields IS NOT NULL THEN (SELECT array_agg(f) \
      FROM unnest(t._stale_fields) AS u (f) WHERE f <> ALL (\(names)::text[]) OR f = ANY (l.names)) END, \
      _updated_at = now() \
      FROM \(DeltaTable.name) AS d, LATERAL (SELECT coalesce(bool_or(h._change_type = 'UNDELETE'), false) \
      AS is_image, coalesce(array_agg(f) FILTER (WHERE f IS NOT NULL), '{}') AS names \
      FROM \(events.qualifiedName) AS h \
      LEFT JOIN LATERAL unnest(h._changed_fields || h._nulled_fields || h._diff_fields) AS u (f) ON true \
      WHERE h._record_id = d.id AND h._change_type IN ('UPDATE', 'UNDELETE') \
      AND (h._commit_timestamp < d._system_modstamp - interval '\(ReadMerge.clockTolerance) ms') \
      IS NOT TRUE AND d._read_at - h._loaded_at < interval '\(visibilityWait) ms') AS l \
      WHERE t.id = d.id AND t._deleted_at IS NULL AND NOT l.is_image \
      AND (\(self.differs(columns, unless: isLater))) RETURNING t.id
      """)
    return (Set((0..<result.rowCount).compactMap { result[$0, 0] }), unproved)
  }

  /// IDs of records whose rows have the values that were read, although a full image in the history
  /// has none, and nothing after it has them: the field was deleted then, and its column kept what it
  /// had.
  private func unproved(
    _ columns: [Int], by history: TableDefinition, over connection: PostgresConnection
  ) throws -> Set<String> {
    let isUnproved = columns.map { column in
      let name = self.definition.dataColumns[column].quotedName
      return "\(DeltaTable.holds(column)) AND d.\(name) IS NOT NULL "
        + "AND d.\(name) IS NOT DISTINCT FROM t.\(name) AND EXISTS (SELECT "
        + "FROM \(history.qualifiedName) AS h WHERE h._record_id = d.id AND h.\(name) IS NULL "
        + "AND (h._change_type = 'SNAPSHOT' AND h._changed_fields IS NULL "
        + "OR h._change_type = 'UNDELETE') AND NOT EXISTS (SELECT "
        + "FROM \(history.qualifiedName) AS p WHERE p._record_id = d.id "
        + "AND p._loaded_at > h._loaded_at AND p.\(name) IS NOT DISTINCT FROM d.\(name)))"
    }
    let result = try connection.query(
      """
      SELECT t.id FROM \(self.definition.qualifiedName) AS t JOIN \(DeltaTable.name) AS d ON d.id = t.id \
      WHERE t._deleted_at IS NULL AND (\(isUnproved.joined(separator: " OR ")))
      """)
    return Set((0..<result.rowCount).compactMap { result[$0, 0] })
  }

  private func copyDeltas(
    of fold: RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws {
    try self.deltas.copy(fold.deltas.indices, of: fold, buffer, isFirst: true, over: connection)
  }

  /// SQL: a delta holds another value than the row.
  private func differs(_ columns: [Int], unless isExcepted: (Int) -> String) -> String {
    columns.map { column in
      let name = self.definition.dataColumns[column].quotedName
      return "\(DeltaTable.holds(column)) AND NOT (\(isExcepted(column))) "
        + "AND d.\(name) IS DISTINCT FROM t.\(name)"
    }.joined(separator: " OR ")
  }
}
