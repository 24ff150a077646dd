internal import PostgresClient

/// Reads events of records back from the history table, as rows to be folded.
struct HistoryReader {
  /// Returns rows grouped by record, and within a record in the order of events: by ordinal within
  /// an epoch, by commit time between epochs. The latest commit time so far counts, which preserves
  /// the order within each epoch; before the first known time, that one counts. `$1` are record
  /// IDs. Events among the dead letters come as gaps.
  let selectStatement: String
  private let history: TableDefinition
  private var names: EarlierColumnNames
  private let unions: UnionColumns
  /// The first data column in the result.
  private var firstColumn: Int {
    self.history.hasReadColumns ? Field.allCases.count : Field.stamp.rawValue
  }

  /// Fields of the result before the data columns.
  private enum Field: Int, CaseIterable {
    case recordID, eventID, epoch, ordinal, changeType, commitTimestamp, commitUser
    case changedFields, nulledFields, diffFields, schemaID
    case stamp, readAt, isContained
  }

  /// The fields with the metadata that a current row keeps of its last event.
  static let metadataFields = RecordFold.MetadataFields(eventID: 0, changeType: 1, commitUser: 2)

  /// - Parameter visibilityWait: milliseconds; see `ReadMerge`.
  init(_ history: TableDefinition, visibilityWait: Int64 = ReadMerge.visibilityWait) {
    let data = history.dataColumns.map(\.quotedName)
    let fixed = [
      "_record_id", "_event_id", "_epoch", "_ordinal", "_change_type", "_commit_timestamp",
      "_commit_user", "_changed_fields", "_nulled_fields", "_diff_fields", "_schema_id",
    ]
    self.selectStatement =
      history.hasReadColumns
      ? Self.selectMerged(history, fixed: fixed, data: data, visibilityWait: visibilityWait)
      : Self.select(history, fixed: fixed, data: data)
    self.history = history
    self.unions = UnionColumns(history.dataColumns)
    self.names = EarlierColumnNames(history.dataColumns.map(\.name))
  }

  /// Sets the renamed columns. Call it before rows are appended.
  mutating func readNames(over connection: PostgresConnection) throws(PostgresError) {
    self.names = try EarlierColumnNames(self.history, over: connection)
  }

  /// Appends the rows of a result of `selectStatement`.
  func append(_ result: BinaryResult, to buffer: inout RowBuffer) {
    for row in 0..<result.rowCount { self.append(row, of: result, to: &buffer) }
  }

  private func append(_ row: Int, of result: BinaryResult, to buffer: inout RowBuffer) {
    func field(_ field: Field) -> UnsafeBufferPointer<UInt8>? {
      field.rawValue < self.firstColumn ? result.withField(row, field.rawValue) : nil
    }
    func append(_ bytes: UnsafeBufferPointer<UInt8>) -> Range<Int> {
      buffer.bytes.append(contentsOf: bytes)
      return buffer.bytes.count - bytes.count..<buffer.bytes.count
    }
    let changeType = field(.changeType)
    let change = Self.change(changeType, isRead: field(.stamp) != nil)
    let read = self.read(change, field(.stamp), field(.readAt), field(.changedFields))
    let recordID = field(.recordID).map(append) ?? 0..<0
    let start = buffer.bytes.count
    var eventID = 0..<0
    for text in [field(.eventID), changeType, field(.commitUser)] {
      let count = text.map { Int32($0.count) } ?? -1
      withUnsafeBytes(of: count.bigEndian) { buffer.bytes.append(contentsOf: $0) }
      guard let text else { continue }
      let range = append(text)
      if eventID.isEmpty { eventID = range }
    }
    let metadata = start..<buffer.bytes.count
    let schemaID =
      self.names.areToday ? nil : field(.schemaID).map { String(decoding: $0, as: UTF8.self) }
    let listed =
      self.columns(of: field(.changedFields), schemaID)
      + self.columns(of: field(.nulledFields), schemaID)
    let diffs = self.columns(of: field(.diffFields), schemaID)
    let first = buffer.cells.count
    for column in self.history.dataColumns.indices {
      if let value = result.withField(row, self.firstColumn + column) {
        buffer.cells.append(
          RowBuffer.Cell(column: column, append(value), isDiff: diffs.contains(column)))
      } else if listed.contains(column) || read?.isWhole == true {
        buffer.cells.append(RowBuffer.Cell(nullOf: column))
      }
    }
    if change == .update { self.unions.nullOtherBranches(in: &buffer, from: first) }
    buffer.rows.append(
      RowBuffer.Row(
        change: change, epoch: Int32(truncatingIfNeeded: Self.integer(field(.epoch)) ?? 0),
        ordinal: Self.integer(field(.ordinal)) ?? 0,
        commitTimestamp: Self.integer(field(.commitTimestamp)).flatMap(Self.milliseconds),
        recordID: recordID, eventID: eventID, metadata: metadata, metadataFieldCount: 3,
        cells: first..<buffer.cells.count, read: read,
        isContained: self.history.hasReadColumns && field(.isContained)?.first == 1))
  }

  private func read(
    _ change: RowBuffer.Change, _ stamp: UnsafeBufferPointer<UInt8>?,
    _ readAt: UnsafeBufferPointer<UInt8>?, _ fields: UnsafeBufferPointer<UInt8>?
  ) -> RowBuffer.Read? {
    guard change == .read || change == .readDeletion else { return nil }
    func time(_ bytes: UnsafeBufferPointer<UInt8>?) -> Int64 {
      Self.integer(bytes).flatMap(Self.milliseconds) ?? 0
    }
    return RowBuffer.Read(
      stamp: time(stamp), readAt: time(readAt), isWhole: fields == nil)
  }

  /// The columns that a list of names contains.
  private func columns(of list: UnsafeBufferPointer<UInt8>?, _ schemaID: String?) -> [Int] {
    Self.texts(list).compactMap { self.names.column($0, schemaID: schemaID) }
  }

  private static func change(
    _ text: UnsafeBufferPointer<UInt8>?, isRead: Bool
  ) -> RowBuffer.Change {
    // An event that is not in the history.
    guard let text else { return .gapUpdate }
    switch String(decoding: text, as: UTF8.self) {
    case "CREATE": return .create
    case "UPDATE": return .update
    case "DELETE": return .delete
    case "UNDELETE": return .undelete
    case "GAP_CREATE": return .gapCreate
    case "GAP_UPDATE": return .gapUpdate
    case "GAP_DELETE": return .gapDelete
    case "GAP_UNDELETE": return .gapUndelete
    case "GAP_OVERFLOW": return .overflow
    case "SNAPSHOT" where isRead: return .read
    case "SNAPSHOT_DELETE" where isRead: return .readDeletion
    case HistoryReader.fieldsType where isRead: return .readFields
    case HistoryReader.refreshType where isRead: return .readFields
    default: return .unknown
    }
  }

  private static func integer(_ bytes: UnsafeBufferPointer<UInt8>?) -> Int64? {
    guard let bytes, let first = bytes.first else { return nil }
    let sign: Int64 = first & 0x80 == 0 ? 0 : -1
    return bytes.reduce(sign) { $0 << 8 | Int64($1) }
  }

  /// The time of a `timestamptz` (microseconds since 2000); nil for the infinities.
  private static func milliseconds(_ value: Int64) -> Int64? {
    guard value != .min, value != .max else { return nil }
    let (rounded, rest) = value.quotientAndRemainder(dividingBy: 1000)
    return rounded - (rest < 0 ? 1 : 0) + 946_684_800_000
  }

  /// The elements of a `text[]` of one dimension.
  private static func texts(_ bytes: UnsafeBufferPointer<UInt8>?) -> [String] {
    guard let bytes, bytes.count >= 20 else { return [] }
    func word(_ offset: Int) -> Int {
      Int(bytes[offset..<offset + 4].reduce(Int32(0)) { $0 << 8 | Int32($1) })
    }
    var texts: [String] = []
    var offset = 20
    while offset + 4 <= bytes.count {
      let count = word(offset)
      offset += 4
      guard count >= 0 else { continue }
      guard count <= bytes.count - offset else { break }
      texts.append(String(decoding: bytes[offset..<offset + count], as: UTF8.self))
      offset += count
    }
    return texts
  }
}
