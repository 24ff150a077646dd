internal import Bytes
internal import JSON
package import Pipeline

/// Turns the rows of one layout into rows of a `RowBuffer`.
///
/// `init` compiles everything that depends only on the layout and its tables; encoding a row
/// allocates only when buffers grow. Metadata comes from the slots that every batch has, whatever
/// stages did to its columns. Used by one thread at a time.
///
/// - A change to several records becomes one row per record ID, even if the source keeps them in
///   one row (`"record_ids": "array"`); such rows share the bytes of their values.
/// - U+0000, which PostgreSQL's text cannot hold, becomes U+FFFD.
/// - Nanoseconds are rounded down to microseconds.
/// - NaN and infinities inside JSON are the strings `"NaN"`, `"Infinity"`, `"-Infinity"`.
package final class CopyEncoder {
  /// Fields of `RowBuffer.Row.metadata`: the fixed columns of history without `_loaded_at`.
  package static let metadataFieldCount = 19

  package let layout: RecordLayout
  /// U+0000 replaced so far.
  package private(set) var replacedCount = 0

  let plan: CopyPlan
  private let numericHasInfinity: Bool
  // Only this class's two files access these, and no method receives one as an argument and also
  // accesses it directly. So the checks for overlapping access are omitted.
  /// All bytes of the current event.
  @exclusivity(unchecked) var values: ByteBuffer
  @exclusivity(unchecked) private var scratch: ByteBuffer
  /// One bit per entry of the plan, set for those in the current row.
  @exclusivity(unchecked) private var present: [UInt64]
  /// By column, the number of the last list that named it.
  @exclusivity(unchecked) var named: [UInt64]
  @exclusivity(unchecked) var listNumber: UInt64 = 0
  @exclusivity(unchecked) var replaced = 0
  /// When the current records were requested, milliseconds since 1970 by the database's clock.
  @exclusivity(unchecked) var readAt: Int64 = 0
  /// The batch's numbers that JSON text cannot express; searched only if there are any.
  @exclusivity(unchecked) private var lostNumbers: [RecordBatch.NonfiniteNumber] = []

  /// - Parameter numericHasInfinity: false for servers before PostgreSQL 14, for which events with
  ///   infinities in such columns are rejected.
  package init(layout: RecordLayout, tables: LayoutTables, numericHasInfinity: Bool = true) {
    self.layout = layout
    self.numericHasInfinity = numericHasInfinity
    self.plan = CopyPlan(layout: layout, tables: tables)
    self.values = ByteBuffer()
    self.scratch = ByteBuffer()
    self.named = Array(repeating: 0, count: self.plan.columnCount)
    self.present = self.plan.constants
  }

  /// Appends the rows of an event.
  ///
  /// - Parameters:
  ///   - index: into `batch.events`.
  ///   - batch: a batch with the encoder's layout.
  ///   - buffer: a buffer with at least as many columns as the encoder's tables.
  /// - Throws: `RejectedValue`; the buffer is then unchanged.
  package func append(
    event index: Int, of batch: RecordBatch, to buffer: inout RowBuffer
  ) throws(RejectedValue) {
    precondition(batch.layout === self.layout, "a batch of another layout")
    precondition(buffer.columnCount >= self.plan.columnCount, "a buffer of other tables")
    let event = batch.events[index]
    let (rowCount, cellCount) = (buffer.rows.count, buffer.cells.count)
    let base = buffer.bytes.count
    var columns = cellCount..<cellCount
    self.values.removeAll()
    self.replaced = 0
    if !batch.nonfinite.isEmpty || !self.lostNumbers.isEmpty { self.lostNumbers = batch.nonfinite }
    do throws(RejectedValue) {
      for row in event.firstRow..<event.firstRow + event.rowCount {
        try self.append(row: row, event, batch, base: base, columns: &columns, to: &buffer)
      }
    } catch {
      buffer.rows.removeLast(buffer.rows.count - rowCount)
      buffer.cells.removeLast(buffer.cells.count - cellCount)
      throw error
    }
    precondition(base + self.values.count < UInt32.max, "a buffer beyond 4 GiB: send it earlier")
    buffer.bytes.append(contentsOf: self.values.bytes)
    self.replacedCount += self.replaced
  }

  /// - Parameter columns: the cells of the previous row.
  private func append(
    row: Int, _ event: RecordBatch.Event, _ batch: RecordBatch, base: Int,
    columns: inout Range<Int>, to buffer: inout RowBuffer
  ) throws(RejectedValue) {
    let cells = batch.row(row)
    let change = Self.change(cells)
    // All rows of the fan-out over record IDs share one copy of the cells.
    if row == event.firstRow || !self.isCopy(row, of: batch) {
      try self.appendCells(cells, base: base, to: &buffer)
      if change == .update {
        if !self.plan.compounds.isEmpty { self.nullCompounds(cells, to: &buffer) }
        self.plan.unions.nullOtherBranches(in: &buffer, from: columns.upperBound)
      }
      columns = columns.upperBound..<buffer.cells.count
    }
    if change == .read || change == .readDeletion || change == .readFields {
      try self.appendRead(
        cells, event, batch, change, base: base, columns: columns, to: &buffer)
      return
    }
    guard cells.value(MetadataSlot.recordID) == nil, let list = cells.value(MetadataSlot.recordIDs)
    else {
      try self.appendRow(
        cells, event, batch, change, recordID: cells.text(MetadataSlot.recordID), base: base,
        columns: columns, to: &buffer)
      return
    }
    var ids = JSONStringList(cells.bytes(list))
    var isFirst = true
    while case .string(let id)? = ids.next() {
      isFirst = false
      self.scratch.removeAll()
      _ = self.scratch.appendUnescaped(id)
      try self.appendRow(
        cells, event, batch, change, recordID: self.scratch.bytes, base: base, columns: columns,
        to: &buffer)
    }
    if isFirst {
      try self.appendRow(
        cells, event, batch, change, recordID: .init(start: nil, count: 0), base: base,
        columns: columns, to: &buffer)
    }
  }

  /// Whether the current cells include all columns of the layout, and of those that only reads bring.
  var isWhole: Bool {
    !self.plan.lacksOnlyRead
      && self.present.reduce(0) { $0 + $1.nonzeroBitCount } == self.plan.entries.count
  }

  /// The record IDs of an event, as its rows have them.
  static func recordIDs(of event: RecordBatch.Event, in batch: RecordBatch) -> [String?] {
    var recordIDs: [String?] = []
    for row in event.firstRow..<event.firstRow + event.rowCount {
      let cells = batch.row(row)
      var text = ByteBuffer(capacity: 16)
      if let id = cells.value(MetadataSlot.recordID) {
        _ = text.appendPostgresText(cells.bytes(id))
        recordIDs.append(String(decoding: text.bytes, as: UTF8.self))
        continue
      }
      var ids = JSONStringList(cells.text(MetadataSlot.recordIDs))
      while case .string(let id)? = ids.next() {
        text.removeAll()
        _ = text.appendUnescaped(id)
        recordIDs.append(String(decoding: text.bytes, as: UTF8.self))
      }
    }
    return recordIDs.filter { $0?.isEmpty == false }
  }

  /// Whether all fields equal those of the previous row.
  private func isCopy(_ row: Int, of batch: RecordBatch) -> Bool {
    let (cells, previous) = (batch.row(row), batch.row(row - 1))
    for slot in MetadataSlot.count..<max(self.layout.slotCount, MetadataSlot.count) {
      let presence = cells.presence[slot]
      guard presence == previous.presence[slot] else { return false }
      if presence == RecordBatch.Presence.value, cells.cells[slot] != previous.cells[slot] {
        return false
      }
    }
    return cells.value(MetadataSlot.diffFields) == previous.value(MetadataSlot.diffFields)
  }

  // MARK: Data columns

  private func appendCells(
    _ row: RecordBatch.Row, base: Int, to buffer: inout RowBuffer
  ) throws(RejectedValue) {
    self.findPresent(UnsafeRawPointer(row.presence))
    let diffs = row.text(MetadataSlot.diffFields)
    for word in self.present.indices {
      var present = self.present[word]
      while present != 0 {
        let index = word &* 64 &+ present.trailingZeroBitCount
        present &= present &- 1
        let entry = self.plan.entries[index]
        let slot = self.plan.slotOfEntry[index]
        let start = self.values.count
        if slot < 0 {
          self.append(CopyPlan.Piece(offset: entry.argument, count: entry.count))
        } else if !row.hasValue(slot) {
          buffer.cells.append(RowBuffer.Cell(nullOf: entry.column))
          continue
        } else if !self.appendValue(entry, row.cells[slot], row) {
          throw self.rejected(entry)
        }
        buffer.cells.append(
          RowBuffer.Cell(
            column: entry.column, base + start..<base + self.values.count,
            isDiff: !diffs.isEmpty && self.isDiff(entry, slot, diffs)))
      }
    }
  }

  /// Whether the value is a diff, or a record that holds one.
  private func isDiff(
    _ entry: CellEncoding, _ slot: Int, _ diffs: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard slot >= 0 else { return false }
    guard entry.operation == .record || entry.operation == .recordText else {
      return diffs.hasField(inSlot: slot)
    }
    return self.plan.listedFields.contains {
      $0.column == entry.column && diffs.hasField(inSlot: $0.slot)
    }
  }

  /// An update that names a whole compound field replaces all of it, so parts that only other
  /// schemas have become null.
  private func nullCompounds(_ row: RecordBatch.Row, to buffer: inout RowBuffer) {
    let changed = row.text(MetadataSlot.changedFields)
    let nulled = row.text(MetadataSlot.nulledFields)
    for compound in self.plan.compounds
    where changed.hasField(inSlot: compound.slot) || nulled.hasField(inSlot: compound.slot) {
      for column in compound.columns { buffer.cells.append(RowBuffer.Cell(nullOf: column)) }
    }
  }

  /// Slots have the order of the schema, cells that of the table.
  private func findPresent(_ presence: UnsafeRawPointer) {
    for word in self.present.indices { self.present[word] = self.plan.constants[word] }
    for word in self.plan.masks.indices {
      // One bit per cell that is not absent: bit 0 of its byte for null, bit 1 for a value.
      var bits =
        UInt64(littleEndian: presence.loadUnaligned(fromByteOffset: word * 8, as: UInt64.self))
        & self.plan.masks[word]
      while bits != 0 {
        let index = Int(self.plan.entryOfSlot[word &* 8 &+ bits.trailingZeroBitCount >> 3])
        bits &= bits &- 1
        self.present[index >> 6] |= 1 << UInt64(index & 63)
      }
    }
  }

  /// False when the column cannot hold the value.
  private func appendValue(_ entry: CellEncoding, _ cell: UInt64, _ row: RecordBatch.Row) -> Bool {
    let number = Int64(bitPattern: cell)
    switch entry.operation {
    case .boolean: self.values.append(UInt8(cell != 0 ? 1 : 0))
    case .booleanText: self.values.appendJSON(cell != 0)
    case .int2: return self.append(Int16(exactly: number))
    case .int4: return self.append(Int32(exactly: number))
    case .int8: self.values.appendBigEndian(number)
    case .integerAsFloat8: self.values.appendBigEndian(Double(number).bitPattern)
    case .integerAsNumeric: self.values.appendNumeric(number, &self.scratch)
    case .integerText: self.values.append(number)
    case .float4: self.values.appendBigEndian(UInt32(truncatingIfNeeded: cell))
    case .floatAsFloat8: self.values.appendBigEndian(Double(Self.float(cell)).bitPattern)
    case .floatAsNumeric:
      return self.values.appendNumeric(
        Self.float(cell), hasInfinity: self.numericHasInfinity, &self.scratch)
    case .floatText: self.appendText(Double(Self.float(cell)), isFloat: true)
    case .doubleAsFloat4:
      let value = Float(Double(bitPattern: cell))
      if value.isInfinite, Double(bitPattern: cell).isFinite { return false }
      self.values.appendBigEndian(value.bitPattern)
    case .float8: self.values.appendBigEndian(cell)
    case .doubleAsNumeric:
      return self.values.appendNumeric(
        Double(bitPattern: cell), hasInfinity: self.numericHasInfinity, &self.scratch)
    case .doubleText: self.appendText(Double(bitPattern: cell), isFloat: false)
    case .doubleAsInt2: return self.append(Int16(exactly: Double(bitPattern: cell)))
    case .doubleAsInt4: return self.append(Int32(exactly: Double(bitPattern: cell)))
    case .doubleAsInt8: return self.append(Int64(exactly: Double(bitPattern: cell)))
    case .dateOfDays: return self.values.appendPostgresDate(days: number)
    case .dateOfMilliseconds:
      return self.values.appendPostgresDate(days: number.dividedRoundingDown(by: 86_400_000))
    case .timeMilliseconds:
      return self.values.appendPostgresTime(microseconds: number.millisecondsAsMicroseconds)
    case .timeMicroseconds: return self.values.appendPostgresTime(microseconds: number)
    case .timeNanoseconds:
      return self.values.appendPostgresTime(microseconds: number.nanosecondsAsMicroseconds)
    case .timestampMilliseconds:
      return self.values.appendPostgresTimestamp(milliseconds: number)
    case .timestampMicroseconds: return self.values.appendPostgresTimestamp(microseconds: number)
    case .timestampNanoseconds:
      return self.values.appendPostgresTimestamp(microseconds: number.nanosecondsAsMicroseconds)
    case .enumeration:
      precondition(cell < UInt64(entry.count), "symbol \(cell) of an enumeration")
      self.append(self.plan.symbols[entry.argument + Int(cell)])
    case .text: self.replaced += self.values.appendPostgresText(self.text(cell, row))
    case .json:
      self.values.append(UInt8(1))
      self.replaced += self.values.appendPostgresJSON(self.text(cell, row))
    default: return self.appendValue(entry, row.bytes(cell), row)
    }
    return true
  }

  private func appendValue(
    _ entry: CellEncoding, _ bytes: UnsafeBufferPointer<UInt8>, _ row: RecordBatch.Row
  ) -> Bool {
    switch entry.operation {
    case .bytes: self.values.append(bytes)
    case .uuid, .textAsUUID: return self.values.appendPostgresUUID(bytes)
    case .decimal: return self.appendDecimal(bytes, entry)
    case .decimalText:
      guard Self.fits(bytes, entry) else { return false }
      self.values.appendDecimal(unscaled: bytes, scale: entry.argument)
    case .interval: return self.values.appendPostgresInterval(bytes)
    case .choices: self.replaced += self.values.appendPostgresChoices(bytes)
    case .stringList: self.replaced += self.values.appendPostgresTextArray(json: bytes)
    case .record, .recordText:
      self.scratch.removeAll()
      self.plan.records[entry.argument].append(
        row: row, lost: self.lostNumbers, to: &self.scratch)
      if entry.operation == .record { self.values.append(UInt8(1)) }
      self.replaced += self.values.appendPostgresJSON(self.scratch.bytes)
    default: preconditionFailure("\(entry.operation) of a range")
    }
    return true
  }

  /// The cell's text; JSON text keeps NaN and infinities. Valid until the next value.
  @inline(__always)
  private func text(_ cell: UInt64, _ row: RecordBatch.Row) -> UnsafeBufferPointer<UInt8> {
    self.lostNumbers.isEmpty ? row.bytes(cell) : self.textWithLostNumbers(cell, row)
  }

  @inline(never)
  private func textWithLostNumbers(
    _ cell: UInt64, _ row: RecordBatch.Row
  ) -> UnsafeBufferPointer<UInt8> {
    let lost = self.lostNumbers.numbers(ofText: cell)
    guard !lost.isEmpty else { return row.bytes(cell) }
    self.scratch.removeAll()
    self.scratch.append(json: row.bytes(cell), lost: lost)
    return self.scratch.bytes
  }

  /// Whether the value is short enough for the precision. Checked before writing, because writing
  /// time grows with the square of the length.
  private static func fits(_ unscaled: UnsafeBufferPointer<UInt8>, _ entry: CellEncoding) -> Bool {
    // log 10 / log 256 is below 0.4153.
    unscaled.count <= 8 || unscaled.count <= entry.count * 4153 / 10000 + 2
  }

  private func appendDecimal(
    _ unscaled: UnsafeBufferPointer<UInt8>, _ entry: CellEncoding
  ) -> Bool {
    guard Self.fits(unscaled, entry) else { return false }
    self.scratch.removeAll()
    self.scratch.appendDecimal(unscaled: unscaled, scale: entry.argument)
    return self.values.appendNumeric(text: self.scratch.bytes, keepsScale: true)
  }

  private static func float(_ cell: UInt64) -> Float {
    Float(bitPattern: UInt32(truncatingIfNeeded: cell))
  }

  @inline(__always)
  private func append(_ value: (some FixedWidthInteger)?) -> Bool {
    guard let value else { return false }
    self.values.appendBigEndian(value)
    return true
  }

  private func appendText(_ value: Double, isFloat: Bool) {
    guard value.isFinite else {
      let text: StaticString = value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity"
      self.values.append(utf8: text)
      return
    }
    if isFloat { self.values.append(Float(value)) } else { self.values.append(value) }
  }

  func append(_ piece: CopyPlan.Piece) {
    self.plan.pool.withUnsafeBufferPointer {
      self.values.append(
        UnsafeBufferPointer(rebasing: $0[piece.offset..<piece.offset + piece.count]))
    }
  }

  private func rejected(_ entry: CellEncoding) -> RejectedValue {
    // Every entry's column has been noted with its names.
    let field = self.plan.fieldOfColumn[entry.column] ?? ("", "")
    return RejectedValue(
      column: field.name, path: field.path, reason: entry.operation.reasonForRejection)
  }
}
