/// What a slot of a `DecodePlan` holds, and so which method of the visitor delivers it.
public enum ValueType: Hashable, Sendable {
  // `scalar`
  case boolean
  case int
  case long
  case float
  case double
  case enumeration([String])
  /// Days since 1970-01-01.
  case date
  /// Milliseconds since 1970-01-01T00:00:00Z of which only the date counts. Not a logical type
  /// of Avro; `DecodePlan.Options.interpretation` gives it.
  case dateInMilliseconds
  case time(LogicalType.TimeUnit)
  case timestamp(LogicalType.TimeUnit, isLocal: Bool)
  // `bytes`
  case string
  /// Bytes, or fixed without a logical type.
  case bytes
  /// Two's complement, big-endian, without redundant leading bytes.
  case decimal(precision: Int, scale: Int)
  case duration
  // `bytes` when encoded as string, `text` when encoded as fixed
  case uuid
  // `text`
  /// A decimal number with a scale of its own: `-12.50`.
  case bigDecimal
  /// JSON text of an array of strings.
  case stringList
  /// JSON text of any other array, a map, a recursive record or an open union.
  case json
}
