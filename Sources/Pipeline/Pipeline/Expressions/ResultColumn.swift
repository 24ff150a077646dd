internal import Bytes
internal import CEL
internal import JSON

/// The type of a column that an expression computes, as named in the pipeline file.
enum ResultType: String, CaseIterable, Sendable {
  case boolean, bigint, double, text, timestamp, json
}

/// The cell for the value of an expression.
struct ResultColumn {
  let type: ColumnType
  /// The type that values must have; `dyn` for all.
  private let expected: CELType

  enum Cell {
    case absent, null
    case number(UInt64)
    /// Bytes of the batch's arena.
    case range(RecordBatch.Range)
    /// Bytes of the buffer passed in.
    case written(Range<Int>)
    /// The reason why the row has no cell, without values.
    case failed(String)
  }

  /// The column for the results of an expression.
  ///
  /// - Parameter stated: nil to use the type of the expression.
  /// - Throws: `ResultTypeError`.
  init(
    _ expression: RowExpression, stated: ResultType?
  ) throws(ResultTypeError) {
    let type = expression.program.type
    if let stated {
      guard stated.accepts(type) else {
        throw ResultTypeError(
          "the expression yields \(type), not \(stated.rawValue); convert it, as with "
            + "\(stated.conversion)")
      }
      (self.type, self.expected) = (stated.columnType, stated.expected)
      return
    }
    self.expected = type
    switch type {
    case .bool: self.type = .boolean
    case .int, .uint: self.type = .int64
    case .double: self.type = .double
    case .string, .duration: self.type = .string
    case .bytes: self.type = .bytes
    case .timestamp: self.type = .timestamp(.microseconds, isLocal: false)
    case .list, .map: self.type = .json
    case .decimal: self.type = try Self.decimal(expression)
    case .null, .dyn, .type:
      let words = ResultType.allCases.map(\.rawValue).joined(separator: ", ")
      throw ResultTypeError(
        "the type of the result is not known beforehand; state it with \"type\": one of \(words)")
    }
  }

  /// The one decimal type among the columns that the expression reads.
  private static func decimal(
    _ expression: RowExpression
  ) throws(ResultTypeError) -> ColumnType {
    var scale: Int?
    var precision = 0
    for column in expression.readColumns {
      guard case .slot(_, .decimal(let digits, let places)) = column.content else { continue }
      guard scale == nil || scale == places else {
        throw ResultTypeError(
          "the result is a decimal of \(scale ?? 0) or of \(places) places; cast the columns to one "
            + "type first")
      }
      scale = places
      precision = max(precision, digits)
    }
    return .decimal(precision: max(precision, 1), scale: scale ?? 0)
  }

  /// The cell for a value. Texts that are not in the arena of the batch are written to `buffer`.
  func cell(_ value: Value, of batch: RecordBatch, _ buffer: inout ByteBuffer) -> Cell {
    let start = buffer.count
    switch value {
    case .null: return .null
    case .failure(let failure) where failure.reason == .absent: return .absent
    case .bool(let value) where self.accepts(.bool): return .number(value ? 1 : 0)
    case .int(let value) where self.accepts(.int): return .number(UInt64(bitPattern: value))
    case .uint(let value) where self.accepts(.uint):
      guard let value = Int64(exactly: value) else {
        return .failed("the result is beyond 64 bits with sign")
      }
      return .number(UInt64(bitPattern: value))
    case .double(let value) where self.accepts(.double): return .number(value.bitPattern)
    case .string(let text) where self.accepts(.string): return Self.bytes(text, of: batch, &buffer)
    case .bytes(let bytes) where self.accepts(.bytes): return Self.bytes(bytes, of: batch, &buffer)
    case .decimal(let decimal) where self.accepts(.decimal):
      return Self.bytes(decimal.unscaled, of: batch, &buffer)
    case .timestamp(let time) where self.accepts(.timestamp):
      let microseconds = time.seconds * 1_000_000 + Int64(time.nanoseconds / 1000)
      return .number(UInt64(bitPattern: microseconds))
    case .duration where self.accepts(.duration):
      buffer.append(utf8: value.json.string ?? "")
      return .written(start..<buffer.count)
    case _ where self.type == .json:
      guard !value.repeatsName else {
        return .failed("two keys of a map have the same text in JSON")
      }
      buffer.append(utf8: value.json.text())
      return .written(start..<buffer.count)
    case let value:
      return .failed(
        "the result is \(value.typeName?.rawValue ?? "no value"), not \(self.expected)")
    }
  }

  private func accepts(_ type: CELType) -> Bool {
    self.expected == type || self.expected == .int && type == .uint
  }

  private static func bytes(
    _ bytes: BorrowedBytes, of batch: RecordBatch, _ buffer: inout ByteBuffer
  ) -> Cell {
    // Text that is already in the arena is not copied.
    if let start = bytes.start {
      let offset = start - UnsafePointer(batch.arenaBase)
      if offset >= 0, offset + bytes.count <= batch.arenaCount {
        return .range(RecordBatch.Range(offset: offset, count: bytes.count))
      }
    }
    let start = buffer.count
    buffer.append(bytes.bytes)
    return .written(start..<buffer.count)
  }
}

extension Value {
  /// Whether a name occurs twice: different keys, such as 1 and '1', may be the same name in JSON.
  fileprivate var repeatsName: Bool {
    switch self {
    case .list(let list): return list.elements.contains(where: \.repeatsName)
    case .map(let map):
      let names = Set(map.keys.map { $0.json.string ?? $0.json.text() })
      return names.count < map.keys.count || map.values.contains(where: \.repeatsName)
    default: return false
    }
  }
}

struct ResultTypeError: Error {
  var message: String
  init(_ message: String) { self.message = message }
}

extension ResultType {
  fileprivate var columnType: ColumnType {
    switch self {
    case .boolean: .boolean
    case .bigint: .int64
    case .double: .double
    case .text: .string
    case .timestamp: .timestamp(.microseconds, isLocal: false)
    case .json: .json
    }
  }

  fileprivate var expected: CELType {
    switch self {
    case .boolean: .bool
    case .bigint: .int
    case .double: .double
    case .text: .string
    case .timestamp: .timestamp
    case .json: .dyn
    }
  }

  fileprivate func accepts(_ type: CELType) -> Bool {
    type == .dyn || type == .null || self == .json || self.expected == type
      || self == .bigint && type == .uint
  }

  fileprivate var conversion: String {
    switch self {
    case .boolean: "bool(…)"
    case .bigint: "int(…)"
    case .double: "double(…)"
    case .text: "string(…)"
    case .timestamp: "timestamp(…)"
    case .json: "dyn(…)"
    }
  }
}
