/// Names of additional columns: those of records that were read, and those of events with their
/// places.
enum ReadColumn {
  /// `SystemModstamp`: how new the record is.
  static let stamp = "_system_modstamp"
  /// When the record was requested.
  static let readAt = "_read_at"
  /// The place of the event; for a read, the place of the last event taken before the line was
  /// written.
  static let epoch = "_epoch"
  static let ordinal = "_ordinal"
  /// The columns that events may have.
  static let place: [(name: String, type: String)] = [
    (Self.epoch, "long"), (Self.ordinal, "long"),
  ]
  /// All columns, with their types in `_columns.json`.
  static let all: [(name: String, type: String)] = [
    (Self.stamp, "timestamp-millis"), (Self.readAt, "timestamp-millis"),
    (Self.epoch, "long"), (Self.ordinal, "long"),
  ]
}
