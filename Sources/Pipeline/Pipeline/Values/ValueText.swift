internal import Bytes

/// The text of values.
enum ValueText {
  /// Whether values of the type have a text of their own.
  static func hasText(_ type: ColumnType) -> Bool {
    switch type {
    case .duration, .fieldSet: false
    default: true
    }
  }

  /// Appends a value as lines of files have it, without quotes: `100.0`, `2026-02-17T04:03:15.000Z`.
  /// NaN and infinities within a list or map are texts, `["NaN"]`.
  ///
  /// - Parameter lost: the batch's `nonfinite`.
  static func append(
    _ cell: UInt64, _ type: ColumnType, _ row: RecordBatch.Row,
    lost: [RecordBatch.NonfiniteNumber], to buffer: inout ByteBuffer
  ) {
    let number = Int64(bitPattern: cell)
    switch type {
    case .boolean: buffer.append(utf8: cell != 0 ? "true" : "false" as StaticString)
    case .int32, .int64: buffer.append(number)
    case .float:
      let value = Float(bitPattern: UInt32(truncatingIfNeeded: cell))
      if value.isFinite { buffer.append(value) } else { Self.append(Double(value), to: &buffer) }
    case .double: Self.append(Double(bitPattern: cell), to: &buffer)
    case .enumeration(let symbols): buffer.append(utf8: symbols[Int(cell)])
    case .bytes: buffer.appendBase64(row.bytes(cell))
    case .decimal(_, let scale): buffer.appendDecimal(unscaled: row.bytes(cell), scale: scale)
    case .date(.days): buffer.appendDate(days: Int32(truncatingIfNeeded: number))
    case .date(.milliseconds): buffer.appendDate(milliseconds: number)
    case .time(let unit): buffer.appendTime(number, unit.fraction)
    case .timestamp(let unit, let isLocal):
      buffer.appendTimestamp(number, unit.fraction, isLocal: isLocal)
    case .json where !lost.isEmpty:
      buffer.append(json: row.bytes(cell), lost: lost.numbers(ofText: cell))
    case .string, .uuid, .stringList, .json: buffer.append(row.bytes(cell))
    case .duration, .fieldSet:
      preconditionFailure("a value of \(type) has no text: the layout was to be refused")
    }
  }

  private static func append(_ value: Double, to buffer: inout ByteBuffer) {
    if value.isFinite { return buffer.append(value) }
    buffer.append(
      utf8: value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity" as StaticString)
  }

  /// Appends a value so that equal values have equal texts, whatever the type of their columns:
  /// numbers in plain notation without zeros at the end of a fraction (`100`, `0.5`), times also
  /// without such zeros (`2026-02-17T04:03:15Z`), and anything else as `append` does.
  ///
  /// - Parameters:
  ///   - lost: the batch's `nonfinite`.
  ///   - scratch: scratch space for a number.
  static func appendCanonical(
    _ cell: UInt64, _ type: ColumnType, _ row: RecordBatch.Row,
    lost: [RecordBatch.NonfiniteNumber], to buffer: inout ByteBuffer,
    _ scratch: inout DecimalNumber
  ) {
    let start = buffer.count
    self.append(cell, type, row, lost: lost, to: &buffer)
    switch type {
    case .float, .double, .decimal:
      let text = UnsafeBufferPointer(rebasing: buffer.bytes[start...])
      guard scratch.read(text) else { return }
      buffer.truncate(to: start)
      scratch.appendPlain(to: &buffer)
    case .time: Self.removeZeros(ofFractionIn: &buffer)
    case .timestamp(_, let isLocal):
      if !isLocal { buffer.truncate(to: buffer.count - 1) }
      Self.removeZeros(ofFractionIn: &buffer)
      if !isLocal { buffer.append(UInt8(ascii: "Z")) }
    default: break
    }
  }

  /// Relies on times always having a fraction.
  private static func removeZeros(ofFractionIn buffer: inout ByteBuffer) {
    while buffer.bytes.last == UInt8(ascii: "0") { buffer.truncate(to: buffer.count - 1) }
    if buffer.bytes.last == UInt8(ascii: ".") { buffer.truncate(to: buffer.count - 1) }
  }
}

extension ColumnType.TimeUnit {
  var fraction: ByteBuffer.SecondFraction {
    switch self {
    case .milliseconds: .milliseconds
    case .microseconds: .microseconds
    case .nanoseconds: .nanoseconds
    }
  }
}

extension ColumnType {
  /// The type in words, for messages.
  var words: String {
    switch self {
    case .boolean: "a boolean"
    case .int32, .int64: "an integer"
    case .float, .double: "a floating-point number"
    case .decimal: "a decimal"
    case .string, .uuid, .enumeration: "text"
    case .date: "a date"
    case .time: "a time of day"
    case .timestamp: "a date and time"
    case .bytes: "binary data"
    case .duration: "a duration"
    case .stringList, .fieldSet: "a list"
    case .json: "a list, a map or a record"
    }
  }
}
