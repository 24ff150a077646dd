/// The content of a column's cells and its written form.
///
/// A cell is 64 bits: a number, or a range of the batch's arena (`RecordBatch.Range`).
package enum ColumnType: Hashable, Sendable {
  package enum TimeUnit: Hashable, Sendable { case milliseconds, microseconds, nanoseconds }
  package enum DateUnit: Hashable, Sendable {
    /// Days since 1970-01-01 (Avro `date`).
    case days
    /// Milliseconds since 1970-01-01T00:00:00Z (Salesforce DateOnly); the date is the one in UTC.
    case milliseconds
  }

  /// 0 or 1.
  case boolean
  /// Sign-extended to 64 bits.
  case int32
  case int64
  /// Bit pattern in the low 32 bits.
  case float
  /// Bit pattern.
  case double
  /// Range of valid UTF-8.
  case string
  /// Index into the symbols; range checked by the decoder.
  case enumeration([String])
  /// Range of raw bytes.
  case bytes
  /// Range of the unscaled value: two's complement, big-endian.
  case decimal(precision: Int, scale: Int)
  /// Range of the 36 characters of its text form.
  case uuid
  case date(DateUnit)
  /// Since midnight.
  case time(TimeUnit)
  /// Since 1970-01-01T00:00:00, in UTC or (`isLocal`) without a time zone.
  case timestamp(TimeUnit, isLocal: Bool)
  /// Range of 12 bytes: months, days, milliseconds, each a little-endian UInt32.
  case duration
  /// Range of JSON text that is an array of strings.
  case stringList
  /// Range of JSON text of any form: arrays, maps, recursive records, open unions.
  case json
  /// Range of a bitset over the slots of the layout, `(slotCount + 7) / 8` bytes; the least
  /// significant bit of the first byte is slot 0. Written as an array of these slots' names in the
  /// output layout.
  case fieldSet
}
