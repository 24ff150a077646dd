/// Names of the columns that lines of records have besides, when they were read rather than changed.
enum ReadColumn {
  /// `SystemModstamp`: how new the record is.
  static let stamp = "_system_modstamp"
  /// When it was asked for.
  static let readAt = "_read_at"
  /// The place of the last event taken before the line was written; for diagnosis.
  static let epoch = "_epoch"
  static let ordinal = "_ordinal"
  /// With their types in `_columns.json`.
  static let all: [(name: String, type: String)] = [
    (Self.stamp, "timestamp-millis"), (Self.readAt, "timestamp-millis"),
    (Self.epoch, "long"), (Self.ordinal, "long"),
  ]
}
