internal import CEL
internal import JSON

/// An expression over the rows of one layout.
///
/// Created once per layout. Columns are read in place, so expressions that create no text, list or
/// map allocate nothing per row. Used by one thread at a time.
final class RowExpression {
  let program: CompiledExpression
  /// Whether the expression reads how a record was changed, which is unknown for records read over
  /// REST.
  let readsChange: Bool
  private let frame: Frame
  /// The columns that the expression can name, in the order of the program's scope.
  private let columns: [Column]
  private let readings: [(column: Int, reading: ColumnReading)]
  private let fields: LayoutFields
  /// Keeps names, symbols and constants.
  private let arena = ByteArena()
  /// Keeps the texts of JSON columns for one row.
  private let rowArena = ByteArena()

  /// Stores only the columns that the expression can name, because a stage may have hundreds of
  /// expressions, and a layout thousands of columns.
  ///
  /// - Parameters:
  ///   - columns: the columns that the expression can name.
  ///   - fields: the layout's fields.
  /// - Throws: `CELError` for a type error, with its place in the expression.
  init(
    _ source: String, columns: [Column], fields: LayoutFields
  ) throws(CELError) {
    let scope = ExpressionScope(
      columns: columns.map { .init($0.name, ColumnReading.type(of: $0)) }, acceptsUnknown: true)
    self.program = try CompiledExpression(source, scope: scope)
    self.columns = columns
    self.fields = fields
    self.frame = Frame(self.program)
    var readings: [(column: Int, reading: ColumnReading)] = []
    for index in self.program.columns {
      let column = columns[index]
      if case .constant(let text) = column.content {
        self.frame.set(index, to: .string(self.arena.store(text)))
      } else if let reading = ColumnReading.reading(of: column, in: self.arena) {
        readings.append((index, reading))
      }
    }
    self.readings = readings
    self.readsChange = readings.contains { Self.changeSlots.contains($0.reading.slot) }
  }

  /// The columns that the expression reads.
  var readColumns: [Column] { self.program.columns.map { self.columns[$0] } }

  /// The expression as a condition.
  ///
  /// - Parameter keepsReads: records that were read pass conditions on how they were changed.
  func condition(keepsReads: Bool) -> StageCondition {
    StageCondition(
      slots: Set(self.readColumns.flatMap(\.slots)), dropsReads: self.readsChange && !keepsReads)
  }

  /// Who changed a record, how, and which of its fields.
  private static let changeSlots: Set<Int> = [
    MetadataSlot.changeType, MetadataSlot.changeOrigin, MetadataSlot.commitUser,
    MetadataSlot.changedFields, MetadataSlot.nulledFields, MetadataSlot.diffFields,
  ]

  /// The value for a row, or a failure; valid until the next call and the next change of the batch.
  ///
  /// - Parameter batch: the row's batch.
  func value(
    _ row: RecordBatch.Row, _ character: RowCharacter, of batch: RecordBatch
  ) -> Value {
    self.rowArena.removeAll()
    for (column, reading) in self.readings {
      self.frame.set(column, to: self.read(reading, row, character, batch))
    }
    return self.frame.evaluate()
  }

  /// The reason why the expression has no value: place and cause, without values.
  func reason(_ failure: Failure) -> String { "\(self.frame.error(failure))" }

  // MARK: Reading

  @inline(__always)
  private func read(
    _ reading: ColumnReading, _ row: RecordBatch.Row, _ character: RowCharacter,
    _ batch: RecordBatch
  ) -> Value {
    let slot = reading.slot
    if self.readsChange, !character.kind.isOfChange, Self.changeSlots.contains(slot) {
      return .absent
    }
    guard row.hasValue(slot) else {
      if case .fieldSet = reading.form { return .list(ListValue([])) }
      return character.missing(slot, row)
    }
    let cell = row.cells[slot]
    switch reading.form {
    case .string:
      // The value is unknown if the event has only a diff.
      if row.isDiff(slot) { return .absent }
      return .string(BorrowedBytes(row.bytes(cell)))
    case .record(let scalar, let parts):
      return self.record(scalar, parts, row, character, batch)
    default: return self.scalar(reading.form, cell, row, batch)
    }
  }

  private func scalar(
    _ form: ColumnReading.Form, _ cell: UInt64, _ row: RecordBatch.Row, _ batch: RecordBatch
  ) -> Value {
    switch form {
    case .bool: return .bool(cell != 0)
    case .int: return .int(Int64(bitPattern: cell))
    case .float: return .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: cell))))
    case .double: return .double(Double(bitPattern: cell))
    case .string: return .string(BorrowedBytes(row.bytes(cell)))
    case .bytes: return .bytes(BorrowedBytes(row.bytes(cell)))
    case .symbols(let symbols): return .string(symbols[Int(cell)])
    case .decimal(let scale):
      return .decimal(Decimal(unscaled: BorrowedBytes(row.bytes(cell)), scale: scale))
    case .date(.days): return Self.midnight(ofDay: Int64(bitPattern: cell))
    case .date(.milliseconds):
      // The date is the one in UTC.
      let days = Int64(bitPattern: cell).quotientAndRemainder(dividingBy: 86_400_000)
      return Self.midnight(ofDay: days.remainder < 0 ? days.quotient - 1 : days.quotient)
    case .timeOfDay(let factor):
      let (nanoseconds, overflows) = Int64(bitPattern: cell).multipliedReportingOverflow(by: factor)
      return overflows ? .failure(Failure(.outOfRange)) : .duration(nanoseconds)
    case .timestamp(let unit):
      return Timestamp(Int64(bitPattern: cell), unitsPerSecond: unit).map { .timestamp($0) }
        ?? .failure(Failure(.outOfRange))
    case .json: return self.json(cell, row, batch)
    case .fieldSet: return self.names(row.bytes(cell))
    case .record: return .failure(Failure(.noOverload))
    }
  }

  private static func midnight(ofDay day: Int64) -> Value {
    let (seconds, overflows) = day.multipliedReportingOverflow(by: 86_400)
    guard !overflows, let time = Timestamp(seconds: seconds) else {
      return .failure(Failure(.outOfRange))
    }
    return .timestamp(time)
  }

  private func json(_ cell: UInt64, _ row: RecordBatch.Row, _ batch: RecordBatch) -> Value {
    let lost = batch.nonfinite.isEmpty ? [] : batch.nonfinite.numbers(ofText: cell)
    guard let json = try? JSONValue(row.bytes(cell), lost: lost) else {
      return .failure(Failure(.invalidText))
    }
    return Value(json, in: self.rowArena)
  }

  private func names(_ bits: UnsafeBufferPointer<UInt8>) -> Value {
    var names: [Value] = []
    var last: UnsafePointer<UInt8>?
    let listed = self.fields.listedNames
    for slot in self.fields.order where bits.hasField(inSlot: slot) {
      guard let name = listed[slot], name.start != last || last == nil else { continue }
      last = name.start
      names.append(.string(name))
    }
    return .list(ListValue(names))
  }

  private func record(
    _ scalar: ColumnReading.ScalarReading?, _ parts: [ColumnReading.Part],
    _ row: RecordBatch.Row, _ character: RowCharacter, _ batch: RecordBatch
  ) -> Value {
    if let scalar, row.hasValue(scalar.slot) {
      return self.scalar(scalar.form, row.cells[scalar.slot], row, batch)
    }
    return .map(
      MapValue(
        uniqueKeys: parts.map { .string($0.key) },
        parts.map { self.read($0.reading, row, character, batch) }))
  }
}

extension Column {
  /// All slots that hold the column's values.
  package var slots: [Int] {
    switch self.content {
    case .constant: []
    case .slot(let slot, _): [slot]
    case .record(let slot, let scalar, let children):
      [slot] + (scalar.map { [$0.slot] } ?? []) + children.flatMap(\.slots)
    }
  }
}
