internal import Bytes
internal import Glibc
internal import Pipeline

// The metadata columns of a history row (`TableDefinition.fixedColumns`), as fields of a COPY.
extension CopyEncoder {
  func appendRow(
    _ row: RecordBatch.Row, _ event: RecordBatch.Event, _ batch: RecordBatch,
    _ change: RowBuffer.Change,
    recordID: UnsafeBufferPointer<UInt8>, base: Int, columns: Range<Int>,
    to buffer: inout RowBuffer
  ) throws(RejectedValue) {
    let start = self.values.count
    self.appendField(Int32(truncatingIfNeeded: batch.epoch))
    self.appendField(event.ordinal)
    self.appendField(self.plan.topic)
    self.appendText(MetadataSlot.replayID, row)
    let eventID = self.appendText(MetadataSlot.eventID, row)
    self.appendField(self.plan.schemaID)
    self.appendKind(row)
    if row.value(MetadataSlot.entity) != nil {
      self.appendText(MetadataSlot.entity, row)
    } else {
      self.appendField(self.plan.entity)
    }
    self.appendText(MetadataSlot.changeType, row)
    let record = self.appendText(recordID)
    try self.appendCommitTimestamp(row)
    try self.appendCommitNumber(row)
    self.appendText(MetadataSlot.commitUser, row)
    self.appendText(MetadataSlot.transactionKey, row)
    try self.appendSequenceNumber(row)
    self.appendText(MetadataSlot.changeOrigin, row)
    let isUpdate = change == .update
    self.appendList(MetadataSlot.changedFields, row, namesCompounds: isUpdate)
    self.appendList(MetadataSlot.nulledFields, row, namesCompounds: isUpdate)
    self.appendList(MetadataSlot.diffFields, row, namesCompounds: false)
    buffer.rows.append(
      RowBuffer.Row(
        change: change, epoch: Int32(truncatingIfNeeded: batch.epoch), ordinal: event.ordinal,
        commitTimestamp: event.commitTimestamp,
        recordID: base + record.lowerBound..<base + record.upperBound,
        eventID: base + eventID.lowerBound..<base + eventID.upperBound,
        metadata: base + start..<base + self.values.count,
        metadataFieldCount: Self.metadataFieldCount, cells: columns))
  }

  /// For a record that was read, `metadata` also has the columns of reads.
  func appendRead(
    _ row: RecordBatch.Row, _ event: RecordBatch.Event, _ batch: RecordBatch,
    _ change: RowBuffer.Change, base: Int, columns: Range<Int>, to buffer: inout RowBuffer
  ) throws(RejectedValue) {
    let isWhole = change != .readFields && self.isWhole
    let start = self.values.count
    self.appendField(Int32(truncatingIfNeeded: batch.epoch))
    self.appendField(event.ordinal)
    self.appendField(self.plan.topic)
    self.appendNull()
    let eventID = self.appendText(MetadataSlot.eventID, row)
    self.appendField(self.plan.schemaID)
    self.appendKind(row)
    self.appendField(self.plan.entity)
    self.appendText(MetadataSlot.changeType, row)
    let record = self.appendText(row.text(MetadataSlot.recordID))
    // Commit time, number and user, transaction, number in it, origin.
    for _ in 0..<6 { self.appendNull() }
    if isWhole { self.appendNull() } else { self.appendNames(of: buffer.cells[columns]) }
    for _ in 0..<2 { self.appendNull() }
    let read = RowBuffer.Read(
      stamp: event.commitTimestamp ?? 0, readAt: self.readAt, isWhole: isWhole)
    try self.appendTime(read.stamp, path: "SystemModstamp")
    try self.appendTime(read.readAt, path: "SystemModstamp")
    buffer.rows.append(
      RowBuffer.Row(
        change: change, epoch: Int32(truncatingIfNeeded: batch.epoch), ordinal: event.ordinal,
        commitTimestamp: nil,
        recordID: base + record.lowerBound..<base + record.upperBound,
        eventID: base + eventID.lowerBound..<base + eventID.upperBound,
        metadata: base + start..<base + self.values.count,
        metadataFieldCount: Self.metadataFieldCount + TableDefinition.readColumns.count,
        cells: columns, read: read))
  }

  private func appendTime(_ milliseconds: Int64, path: String) throws(RejectedValue) {
    let field = self.values.beginField()
    guard self.values.appendPostgresTimestamp(milliseconds: milliseconds) else {
      throw RejectedValue(
        column: "_system_modstamp", path: path,
        reason: CellEncoding.Operation.timestampMilliseconds.reasonForRejection)
    }
    self.values.finishField(field)
  }

  /// The names of the fields whose columns have cells.
  private func appendNames(of cells: ArraySlice<RowBuffer.Cell>) {
    let field = self.values.beginField()
    let array = self.values.beginTextArray()
    var elementCount = 0
    self.listNumber += 1
    let first = self.listNumber
    for cell in cells { self.named[Int(cell.column)] = first }
    self.listNumber += 1
    for listed in self.plan.listedFields where self.named[listed.column] == first {
      self.named[listed.column] = self.listNumber
      self.append(listed.element)
      elementCount += 1
    }
    self.values.finishTextArray(array, elementCount: elementCount)
    self.values.finishField(field)
  }

  private func appendNull() { self.values.appendBigEndian(-1 as Int32) }

  private func appendField(_ value: some FixedWidthInteger) {
    self.values.appendBigEndian(Int32(value.bitWidth / 8))
    self.values.appendBigEndian(value)
  }

  private func appendField(_ piece: CopyPlan.Piece) {
    self.values.appendBigEndian(Int32(piece.count))
    self.append(piece)
  }

  /// Null unless the slot has a value.
  @discardableResult
  private func appendText(_ slot: Int, _ row: RecordBatch.Row) -> Range<Int> {
    guard let cell = row.value(slot) else {
      self.appendNull()
      return self.values.count..<self.values.count
    }
    return self.appendNonNull(row.bytes(cell))
  }

  /// Null when empty.
  private func appendText(_ text: UnsafeBufferPointer<UInt8>) -> Range<Int> {
    guard !text.isEmpty else {
      self.appendNull()
      return self.values.count..<self.values.count
    }
    return self.appendNonNull(text)
  }

  /// Returns the place of the text.
  private func appendNonNull(_ text: UnsafeBufferPointer<UInt8>) -> Range<Int> {
    let field = self.values.beginField()
    self.replaced += self.values.appendPostgresText(text)
    self.values.finishField(field)
    return field..<self.values.count
  }

  private func appendKind(_ row: RecordBatch.Row) {
    let kind = row.value(MetadataSlot.kind).flatMap {
      EventKind(rawValue: UInt8(truncatingIfNeeded: $0))
    }
    let name: StaticString? =
      switch kind {
      case .change: "change"
      case .gap: "gap"
      case .overflow: "overflow"
      case .wildcard: "wildcard"
      case .event: "event"
      case .snapshot: "snapshot"
      case nil: nil
      }
    guard let name else { return self.appendNull() }
    self.values.appendBigEndian(Int32(name.utf8CodeUnitCount))
    self.values.append(utf8: name)
  }

  private func appendCommitTimestamp(_ row: RecordBatch.Row) throws(RejectedValue) {
    guard let cell = row.value(MetadataSlot.commitTimestamp) else { return self.appendNull() }
    let field = self.values.beginField()
    guard
      self.values.appendPostgresTimestamp(milliseconds: Int64(bitPattern: cell))
    else {
      throw RejectedValue(
        column: "_commit_timestamp", path: "ChangeEventHeader.commitTimestamp",
        reason: CellEncoding.Operation.timestampMilliseconds.reasonForRejection)
    }
    self.values.finishField(field)
  }

  private func appendCommitNumber(_ row: RecordBatch.Row) throws(RejectedValue) {
    guard let cell = row.value(MetadataSlot.commitNumber) else { return self.appendNull() }
    guard let number = Self.integer(row.bytes(cell)) else {
      throw RejectedValue(
        column: "_commit_number", path: "ChangeEventHeader.commitNumber",
        reason: CellEncoding.Operation.int8.reasonForRejection)
    }
    self.appendField(number)
  }

  private func appendSequenceNumber(_ row: RecordBatch.Row) throws(RejectedValue) {
    guard let cell = row.value(MetadataSlot.sequenceNumber) else { return self.appendNull() }
    guard let number = Int32(exactly: Int64(bitPattern: cell)) else {
      throw RejectedValue(
        column: "_sequence_number", path: "ChangeEventHeader.sequenceNumber",
        reason: CellEncoding.Operation.int4.reasonForRejection)
    }
    self.appendField(number)
  }

  /// The value of decimal digits; nil for any other text and for values over 64 bits.
  private static func integer(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    var value: Int64 = 0
    for byte in text.dropFirst(isNegative ? 1 : 0) {
      guard (0x30...0x39).contains(byte) else { return nil }
      let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
      let digit = Int64(byte - 0x30)
      // Accumulates downwards, because the negative range has one more number.
      let (sum, overflowOfSum) = tens.subtractingReportingOverflow(digit)
      guard !overflow, !overflowOfSum else { return nil }
      value = sum
    }
    guard text.count > (isNegative ? 1 : 0) else { return nil }
    return isNegative ? value : value == .min ? nil : -value
  }

  /// The names of the set's fields, each column once. Change events always have a list, even an
  /// empty one.
  ///
  /// - Parameter namesCompounds: also names columns of a compound field that only other schemas
  ///   have. The row nulls them, and a rebuild from history has to know that.
  private func appendList(_ slot: Int, _ row: RecordBatch.Row, namesCompounds: Bool) {
    let set = row.text(slot)
    guard !set.isEmpty || self.layout.family == .changeEvent else { return self.appendNull() }
    let field = self.values.beginField()
    let array = self.values.beginTextArray()
    var elementCount = 0
    self.listNumber += 1
    if !set.isEmpty {
      for listed in self.plan.listedFields
      where set.hasField(inSlot: listed.slot)
        && self.named[listed.column] != self.listNumber
      {
        self.named[listed.column] = self.listNumber
        self.append(listed.element)
        elementCount += 1
      }
      for compound in self.plan.compounds
      where namesCompounds && set.hasField(inSlot: compound.slot) {
        for (column, element) in zip(compound.columns, compound.elements)
        where self.named[column] != self.listNumber {
          self.named[column] = self.listNumber
          self.append(element)
          elementCount += 1
        }
      }
    }
    self.values.finishTextArray(array, elementCount: elementCount)
    self.values.finishField(field)
  }

  // MARK: Kinds of change

  static func change(_ row: RecordBatch.Row) -> RowBuffer.Change {
    let kind = row.value(MetadataSlot.kind).flatMap {
      EventKind(rawValue: UInt8(truncatingIfNeeded: $0))
    }
    let type = row.text(MetadataSlot.changeType)
    switch kind {
    case .overflow: return .overflow
    case .wildcard: return .wildcard
    case .event, nil: return .event
    case .snapshot:
      if Self.equals(type, "SNAPSHOT") { return .read }
      let isOfFields =
        Self.equals(type, "SNAPSHOT_FIELDS") || Self.equals(type, "SNAPSHOT_REFRESH")
      return isOfFields ? .readFields : .readDeletion
    case .change:
      if Self.equals(type, "UPDATE") { return .update }
      if Self.equals(type, "CREATE") { return .create }
      if Self.equals(type, "DELETE") { return .delete }
      return Self.equals(type, "UNDELETE") ? .undelete : .unknown
    case .gap:
      if Self.equals(type, "GAP_UPDATE") { return .gapUpdate }
      if Self.equals(type, "GAP_CREATE") { return .gapCreate }
      if Self.equals(type, "GAP_DELETE") { return .gapDelete }
      return Self.equals(type, "GAP_UNDELETE") ? .gapUndelete : .unknown
    }
  }

  private static func equals(_ text: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    guard let start = text.baseAddress, text.count == word.utf8CodeUnitCount else { return false }
    return memcmp(start, word.utf8Start, text.count) == 0
  }
}
