import Pipeline
import PostgresClient
import TestSupport

@testable import PostgresSink

/// Events of `Opportunity` under schemas whose custom fields an admin renames.
final class FieldHistory {
  /// A custom field under its present name.
  struct Field {
    var name: String
    /// Nil where the schema does not say.
    var id: String?
    var type = ColumnType.string

    init(_ name: String, _ id: String?, _ type: ColumnType = .string) {
      (self.name, self.id, self.type) = (name, id, type)
    }
  }

  let database: TestDatabase
  private(set) var run: SinkRun
  private let change: (inout PostgresSinkConfiguration) -> Void
  private var ordinal: Int64 = 0
  /// Milliseconds since 1970 of the last event.
  private(set) var time: Int64 = 1_771_300_000_000

  init(
    _ database: TestDatabase,
    _ change: @escaping (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) throws {
    self.database = database
    self.change = change
    self.run = try SinkRun(database, change)
    try self.run.sink.open(creating: [:])
  }

  static func layout(_ schemaID: String, _ fields: [Field]) -> RecordLayout {
    SinkRun.layout(
      schemaID: schemaID,
      fields.enumerated().map { Column($1.name, 3 + $0, $1.type, fieldID: $1.id) })
  }

  /// Another run.
  func restart(_ change: ((inout PostgresSinkConfiguration) -> Void)? = nil) throws {
    self.run.sink.close()
    self.run = try SinkRun(self.database, ordinal: self.ordinal, change ?? self.change)
    try self.run.sink.open()
  }

  /// Commits an event that names these fields.
  func write(
    _ type: String, _ record: String, _ layout: RecordLayout, _ values: [String: TestCell]
  ) throws {
    self.time += 100_000
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    var cells: [Int: TestCell] = [:]
    var (changed, nulled): ([Int], [Int]) = ([], [])
    for column in layout.columns {
      guard case .slot(let slot, _) = column.content, let value = values[column.name] else {
        continue
      }
      cells[slot] = value
      if case .null = value { nulled.append(slot) } else { changed.append(slot) }
    }
    if type == "UPDATE" {
      cells[MetadataSlot.changedFields] = .slots(changed)
      cells[MetadataSlot.nulledFields] = .slots(nulled)
    }
    batch.addChange(type, record, ordinal: self.ordinal, commitTimestamp: self.time, cells)
    self.ordinal += 1
    self.run.advance()
    try self.run.sink.take(batch)
    try self.run.commit()
  }

  func rows(_ sql: String) throws -> [String] {
    try self.run.eye.rows(sql).map { $0.joined(separator: "|") }
  }

  func columns(_ table: String = "opportunity") throws -> [String] {
    try self.run.eye.column(
      """
      SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute \
      WHERE attrelid = 'salesforce.\(table)'::regclass AND attnum > 0 AND NOT attisdropped \
      AND attname NOT LIKE '\\_%' AND attname NOT IN ('id', 'name', 'parent', 'amount') \
      ORDER BY attnum
      """)
  }

  /// Field, old value and new value of the changes to a record, in their order.
  func changes(_ record: String = "r") throws -> [String] {
    try self.rows(
      """
      SELECT field, old_value, new_value FROM salesforce.opportunity_changes \
      WHERE id = '\(record)' AND field IS NOT NULL ORDER BY changed_at, field
      """)
  }

  /// The number of current rows that a rebuild from the history would change.
  func rebuild() throws -> Int {
    let tables = try TableCatalog(self.database.configuration(self.change))
      .storedTables(over: self.run.eye)
    return try Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
      .refoldAll(over: self.run.eye).changed
  }
}
