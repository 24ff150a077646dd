/// What a slot of a `DecodePlan` holds, which determines the visitor method that receives it.
public enum ValueType: Hashable, Sendable {
  // `scalar`
  /// 0 or 1, by `scalar`.
  case boolean
  /// 32 bits, by `scalar`, sign-extended.
  case int
  /// 64 bits, by `scalar`.
  case long
  /// The bit pattern in the low 32 bits, by `scalar`.
  case float
  /// The bit pattern, by `scalar`.
  case double
  /// Symbols, whose index is delivered by `scalar`.
  case enumeration([String])
  /// Days since 1970-01-01.
  case date
  /// Milliseconds since 1970-01-01T00:00:00Z, of which only the date counts. Not an Avro logical
  /// type, but assigned by `DecodePlan.Options.interpretation`.
  case dateInMilliseconds
  /// Time since midnight, by `scalar`.
  case time(LogicalType.TimeUnit)
  /// Time since 1970, in UTC or, if `isLocal`, in an unspecified time zone; by `scalar`.
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
  // `bytes` if encoded as string, `text` if encoded as fixed
  /// 36 characters, by `bytes` or `text`.
  case uuid
  // `text`
  /// A decimal number with its own scale: `-12.50`.
  case bigDecimal
  /// JSON text of an array of strings.
  case stringList
  /// JSON text of any other array, a map, a recursive record or an open union.
  case json
}
