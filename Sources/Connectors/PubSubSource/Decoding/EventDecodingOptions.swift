package import Avro

/// How events become rows.
package struct EventDecodingOptions: Sendable {
  /// What a change to several records becomes: one row for each, or one row with a list of IDs.
  package enum RecordIDs: Sendable { case rows, array }

  package var recordIDs: RecordIDs
  /// The maximum number of records per event. Each becomes a row, or an item of the list.
  package var maxRecordsPerEvent: Int
  /// The maximum memory of an event's rows. With several records, each has a row with every column.
  package var maxRowByteCount = 64 << 20
  /// The maximum size of one event in the output. With several records, each has all values.
  package var maxOutputByteCount = 256 << 20
  package var limits: DecodeLimits

  package init(
    recordIDs: RecordIDs = .rows, maxRecordsPerEvent: Int = 10_000,
    limits: DecodeLimits = DecodeLimits()
  ) {
    self.recordIDs = recordIDs
    self.maxRecordsPerEvent = maxRecordsPerEvent
    self.limits = limits
  }
}
