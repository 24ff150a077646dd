package import Pipeline

/// How a cell becomes a value in PostgreSQL's binary format.
package struct CellEncoding {
  package enum Operation: UInt8 {
    // From numbers in the cell.
    case boolean, booleanText
    case int2, int4, int8, integerAsFloat8, integerAsNumeric, integerText
    case float4, floatAsFloat8, floatAsNumeric, floatText
    case doubleAsFloat4, float8, doubleAsNumeric, doubleText
    case doubleAsInt2, doubleAsInt4, doubleAsInt8
    case dateOfDays, dateOfMilliseconds
    case timeMilliseconds, timeMicroseconds, timeNanoseconds
    case timestampMilliseconds, timestampMicroseconds, timestampNanoseconds
    case enumeration
    // From bytes in the arena.
    case text, bytes, uuid, textAsUUID, decimal, decimalText, interval, json, choices, stringList
    // From neither the cell nor the arena.
    case constant, record, recordText
  }

  package var operation: Operation
  /// Scale of a decimal, first index into the plan's symbols, index of a record's writer.
  package var argument: Int
  /// Precision of a decimal, count of symbols.
  package var count: Int
  /// Index into the table's columns.
  package var column: Int

  package init(operation: Operation, column: Int, argument: Int = 0, count: Int = 0) {
    self.operation = operation
    self.argument = argument
    self.count = count
    self.column = column
  }

  /// Nil when values of the column cannot be written as `target`.
  package static func operation(from column: Column, to target: PostgresType) -> Operation? {
    switch column.content {
    case .constant: target == .text ? .constant : nil
    case .record: target == .jsonb ? .record : target == .text ? .recordText : nil
    case .slot(_, let type): Self.operation(from: type, to: target)
    }
  }

  private static func operation(from type: ColumnType, to target: PostgresType) -> Operation? {
    switch (type, target) {
    case (.boolean, .boolean): .boolean
    case (.boolean, .text): .booleanText
    case (.int32, .smallint), (.int64, .smallint): .int2
    case (.int32, .integer), (.int64, .integer): .int4
    case (.int32, .bigint), (.int64, .bigint): .int8
    case (.int32, .doublePrecision), (.int64, .doublePrecision): .integerAsFloat8
    case (.int32, .numeric), (.int64, .numeric): .integerAsNumeric
    case (.int32, .text), (.int64, .text): .integerText
    case (.float, .real): .float4
    case (.float, .doublePrecision): .floatAsFloat8
    case (.float, .numeric): .floatAsNumeric
    case (.float, .text): .floatText
    case (.double, .real): .doubleAsFloat4
    case (.double, .doublePrecision): .float8
    case (.double, .numeric): .doubleAsNumeric
    case (.double, .smallint): .doubleAsInt2
    case (.double, .integer): .doubleAsInt4
    case (.double, .bigint): .doubleAsInt8
    case (.double, .text): .doubleText
    case (.string, .text), (.uuid, .text): .text
    case (.string, .textArray): .choices
    case (.string, .uuid): .textAsUUID
    case (.enumeration, .text): .enumeration
    case (.bytes, .bytea): .bytes
    case (.decimal, .numeric): .decimal
    case (.decimal, .text): .decimalText
    case (.uuid, .uuid): .uuid
    case (.date(.days), .date): .dateOfDays
    case (.date(.milliseconds), .date): .dateOfMilliseconds
    case (.time(.milliseconds), .time): .timeMilliseconds
    case (.time(.microseconds), .time): .timeMicroseconds
    case (.time(.nanoseconds), .time): .timeNanoseconds
    case (.timestamp(let unit, _), .timestamptz), (.timestamp(let unit, _), .timestamp):
      switch unit {
      case .milliseconds: .timestampMilliseconds
      case .microseconds: .timestampMicroseconds
      case .nanoseconds: .timestampNanoseconds
      }
    case (.duration, .interval): .interval
    case (.stringList, .textArray): .stringList
    case (.stringList, .jsonb), (.json, .jsonb): .json
    case (.stringList, .text), (.json, .text): .text
    default: nil
    }
  }
}
