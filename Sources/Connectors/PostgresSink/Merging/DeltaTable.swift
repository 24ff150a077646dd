internal import PostgresClient

/// The temporary table through which deltas reach the current table.
///
/// Its name does not depend on the entity, and the transaction drops it: with a pooler in
/// transaction mode, no session state persists.
struct DeltaTable {
  static let name = "pg_temp._etl_delta"

  /// Applies to the rest of the transaction. Without it, the planner would scan whole tables for a
  /// few rows, because temporary tables have no statistics.
  static let planSettings =
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off"

  /// Reverts `planSettings` for a statement that scans whole tables.
  static let usualPlans =
    "SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT"

  /// The bits of `_flags`.
  struct Flags: OptionSet {
    var rawValue: Int32
    static let replacement = Flags(rawValue: 1)
    static let deletedSet = Flags(rawValue: 2)
    static let deletedCleared = Flags(rawValue: 4)
    static let staleSet = Flags(rawValue: 8)
    static let staleCleared = Flags(rawValue: 16)
    /// Set for a replacement; a patch that becomes a row is partial anyway.
    static let partial = Flags(rawValue: 32)
    static let removed = Flags(rawValue: 64)
    static let revived = Flags(rawValue: 128)
    /// The record's first known event is not a full image.
    static let beginsUnknown = Flags(rawValue: 256)
  }

  /// Columns per mask, without the sign bit.
  static let maskWidth = 63

  /// SQL: the delta `d` has a value or a null for a column.
  static func holds(_ column: Int) -> String {
    "d._mask\(column / Self.maskWidth) & "
      + "\(Int64(1) << Int64(column % Self.maskWidth))::bigint <> 0"
  }

  private let columns: [TableColumn]
  private let columnNames: [[UInt8]]
  let maskCount: Int
  let createStatement: String
  let copyStatement: String
  private let fieldCount: Int
  /// The number of fields of a row that is copied directly into the current table.
  let directFieldCount: Int
  let directCopyStatement: String
  /// Whether the current table has the columns of reads.
  private let hasReadColumns: Bool
  /// Whether replacements may keep the values of some columns.
  private let hasOnlyRead: Bool

  init(_ current: TableDefinition) {
    self.columns = current.dataColumns
    self.columnNames = current.dataColumns.map { Array($0.name.utf8) }
    self.maskCount = (current.dataColumns.count + Self.maskWidth - 1) / Self.maskWidth
    var fixed = [("id", "text"), ("_flags", "integer")]
    fixed += (0..<self.maskCount).map { ("_mask\($0)", "bigint") }
    fixed += [
      ("_first_epoch", "integer"), ("_first_ordinal", "bigint"), ("_epoch", "integer"),
      ("_ordinal", "bigint"), ("_event_id", "text"), ("_change_type", "text"),
      ("_commit_timestamp", "timestamptz"), ("_commit_user", "text"),
      ("_deleted_at", "timestamptz"), ("_stale_added", "text[]"),
      ("_system_modstamp", "timestamptz"), ("_read_at", "timestamptz"),
    ]
    let data = self.columns.map { ($0.quotedName, $0.type.sqlName) }
    let all = fixed + data
    self.fieldCount = all.count
    self.createStatement = """
      \(Self.planSettings); DROP TABLE IF EXISTS \(Self.name); CREATE TEMPORARY TABLE _etl_delta (\
      \(all.map { "\($0.0) \($0.1)" }.joined(separator: ", "))) ON COMMIT DROP
      """
    self.copyStatement = """
      COPY \(Self.name) (\(all.map(\.0).joined(separator: ", "))) FROM STDIN (FORMAT binary)
      """
    self.hasReadColumns = current.hasReadColumns
    self.hasOnlyRead = current.dataColumns.contains(where: \.isOnlyRead)
    let direct =
      Self.directColumns
      + (current.hasReadColumns ? TableDefinition.readColumns.map(\.name) : [])
      + self.columns.map(\.quotedName)
    self.directFieldCount = direct.count
    self.directCopyStatement = """
      COPY \(current.qualifiedName) (\(direct.joined(separator: ", "))) FROM STDIN (FORMAT binary)
      """
  }

  private static let directColumns = [
    "id", "_epoch", "_ordinal", "_event_id", "_change_type", "_commit_timestamp", "_commit_user",
    "_deleted_at", "_stale", "_partial", "_stale_fields",
  ]

  /// Copies deltas, which must not have pending diffs.
  func copy(
    _ deltas: some Sequence<Int>, of fold: RecordFold, _ buffer: RowBuffer, isFirst: Bool,
    over connection: PostgresConnection
  ) throws {
    let sql = isFirst ? "\(self.createStatement); \(self.copyStatement)" : self.copyStatement
    try connection.copyIn(sql) { writer in
      var row = CopyRow()
      for index in deltas {
        self.encode(index, of: fold, buffer, into: &row)
        try row.send(to: &writer)
      }
    }
  }

  /// Copies replacements of records that the current table lacks directly into it.
  func copyDirect(
    _ deltas: some Sequence<Int>, of fold: RecordFold, _ buffer: RowBuffer,
    over connection: PostgresConnection
  ) throws {
    try connection.copyIn(self.directCopyStatement) { writer in
      var row = CopyRow()
      for index in deltas {
        self.encodeDirect(index, of: fold, buffer, into: &row)
        try row.send(to: &writer)
      }
    }
  }

  private func encode(
    _ index: Int, of fold: RecordFold, _ buffer: RowBuffer, into row: inout CopyRow
  ) {
    let delta = fold.deltas[index]
    precondition(delta.pendingDiffCount == 0, "a delta with diffs to resolve")
    let cells = fold.cells(of: index)
    row.begin(fieldCount: self.fieldCount)
    fold.withBytes(buffer) { rows, own in
      row.value(delta.isIDOwn ? own : rows, delta.recordID)
      row.value(Self.flags(delta).rawValue)
      for mask in 0..<self.maskCount { row.value(self.mask(mask, delta, cells)) }
      row.value(delta.firstEpoch)
      row.value(delta.firstOrdinal)
      self.encodeLastEvent(delta, fold, buffer, rows: rows, own: own, into: &row)
      self.encodeDeletion(delta, into: &row)
      self.encodeStaleFields(cells, into: &row)
      row.time(delta.stamp)
      row.time(delta.read?.readAt)
      self.encodeValues(cells, rows: rows, own: own, into: &row)
    }
  }

  private func encodeDirect(
    _ index: Int, of fold: RecordFold, _ buffer: RowBuffer, into row: inout CopyRow
  ) {
    let delta = fold.deltas[index]
    let cells = fold.cells(of: index)
    row.begin(fieldCount: self.directFieldCount)
    fold.withBytes(buffer) { rows, own in
      row.value(delta.isIDOwn ? own : rows, delta.recordID)
      self.encodeLastEvent(delta, fold, buffer, rows: rows, own: own, into: &row)
      self.encodeDeletion(delta, into: &row)
      row.value(delta.stale == .set)
      row.value(delta.isPartial)
      self.encodeStaleFields(cells, into: &row)
      if self.hasReadColumns {
        row.time(delta.stamp)
        row.time(delta.read?.readAt)
      }
      self.encodeValues(cells, rows: rows, own: own, into: &row)
    }
  }

  private func encodeLastEvent(
    _ delta: RecordDelta, _ fold: RecordFold, _ buffer: RowBuffer,
    rows: UnsafeBufferPointer<UInt8>, own: UnsafeBufferPointer<UInt8>, into row: inout CopyRow
  ) {
    let event = fold.lastEvent(delta, buffer)
    let texts = delta.detached == nil ? rows : own
    row.value(delta.epoch)
    row.value(delta.ordinal)
    row.value(texts, event.eventID)
    row.value(texts, event.changeType)
    row.time(delta.commitTimestamp)
    row.value(texts, event.commitUser)
  }

  private func encodeDeletion(_ delta: RecordDelta, into row: inout CopyRow) {
    guard delta.deleted == .set else { return row.null() }
    // A record deleted at an unknown time has `-infinity`.
    guard delta.deletedAt != nil else { return row.value(Int64.min) }
    row.time(delta.deletedAt)
  }

  private func encodeStaleFields(_ cells: ArraySlice<DeltaCell>, into row: inout CopyRow) {
    guard cells.contains(where: \.isStale) else { return row.null() }
    row.value(texts: zip(self.columnNames, cells).filter { $0.1.isStale }.map(\.0))
  }

  private func encodeValues(
    _ cells: ArraySlice<DeltaCell>, rows: UnsafeBufferPointer<UInt8>,
    own: UnsafeBufferPointer<UInt8>, into row: inout CopyRow
  ) {
    for cell in cells {
      guard cell.isSet, !cell.isNull else {
        row.null()
        continue
      }
      let start = Int(cell.offset)
      row.value(cell.isOwn ? own : rows, start..<start + Int(cell.count))
    }
  }

  private func mask(
    _ mask: Int, _ delta: RecordDelta, _ cells: ArraySlice<DeltaCell>
  ) -> Int64 {
    if delta.isReplacement, delta.read?.isWhole != false, !self.hasOnlyRead { return .max }
    let first = cells.startIndex + mask * Self.maskWidth
    var bits: Int64 = 0
    for index in first..<min(first + Self.maskWidth, cells.endIndex) where cells[index].isSet {
      bits |= 1 << Int64(index - first)
    }
    return bits
  }

  private static func flags(_ delta: RecordDelta) -> Flags {
    var flags: Flags = []
    if delta.isReplacement { flags.insert(.replacement) }
    if delta.deleted == .set { flags.insert(.deletedSet) }
    if delta.deleted == .cleared { flags.insert(.deletedCleared) }
    if delta.stale == .set { flags.insert(.staleSet) }
    if delta.stale == .cleared { flags.insert(.staleCleared) }
    if delta.isReplacement && delta.isPartial { flags.insert(.partial) }
    if delta.isRemoved { flags.insert(.removed) }
    if delta.isRevived { flags.insert(.revived) }
    if !delta.beginsWithImage { flags.insert(.beginsUnknown) }
    return flags
  }
}
