public import Avro

/// How events become rows.
public struct EventDecodingOptions: Sendable {
  /// What a change of several records becomes: a row for each, or one row with a list of IDs.
  public enum RecordIDs: Sendable { case rows, array }

  public var recordIDs: RecordIDs
  /// Most records one event may be about. Each is a row of its own, or an item of the list.
  public var maxRecordsPerEvent: Int
  /// Memory of the rows of one event: of several records each has a row with every column.
  public var maxRowByteCount = 64 << 20
  /// Bytes that one event may be in the output: of several records each has all values.
  public var maxOutputByteCount = 256 << 20
  public var limits: DecodeLimits

  public init(
    recordIDs: RecordIDs = .rows, maxRecordsPerEvent: Int = 10_000,
    limits: DecodeLimits = DecodeLimits()
  ) {
    self.recordIDs = recordIDs
    self.maxRecordsPerEvent = maxRecordsPerEvent
    self.limits = limits
  }
}
