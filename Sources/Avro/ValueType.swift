/// What a slot of a `DecodePlan` holds, and so which method of the visitor delivers it.
public enum ValueType: Hashable, Sendable {
  // `scalar`
  /// 0 or 1, by `scalar`.
  case boolean
  /// 32 bits, by `scalar`, sign-extended.
  case int
  /// 64 bits, by `scalar`.
  case long
  /// Its bit pattern in the low 32 bits, by `scalar`.
  case float
  /// Its bit pattern, by `scalar`.
  case double
  /// Symbols, of which `scalar` gives the index.
  case enumeration([String])
  /// Days since 1970-01-01.
  case date
  /// Milliseconds since 1970-01-01T00:00:00Z of which only the date counts. Not a logical type
  /// of Avro; `DecodePlan.Options.interpretation` gives it.
  case dateInMilliseconds
  /// Time since midnight, by `scalar`.
  case time(LogicalType.TimeUnit)
  /// Time since 1970, in UTC or, when `isLocal`, in a time zone that is not given; by `scalar`.
  case timestamp(LogicalType.TimeUnit, isLocal: Bool)
  // `bytes`
  /// Valid UTF-8, by `bytes`.
  case string
  /// Bytes, or fixed without a logical type.
  case bytes
  /// Two's complement, big-endian, without redundant leading bytes.
  case decimal(precision: Int, scale: Int)
  /// Months, days and milliseconds: three little-endian 32-bit numbers, by `bytes`.
  case duration
  // `bytes` when encoded as string, `text` when encoded as fixed
  /// 36 characters, by `bytes` or `text`.
  case uuid
  // `text`
  /// A decimal number with a scale of its own: `-12.50`.
  case bigDecimal
  /// JSON text of an array of strings.
  case stringList
  /// JSON text of any other array, a map, a recursive record or an open union.
  case json
}
