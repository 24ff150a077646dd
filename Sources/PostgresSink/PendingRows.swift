internal import Pipeline

/// Rows of one topic for the tables of one entity, waiting for their transaction.
final class PendingRows {
  let topic: String
  let entity: String
  let tables: LayoutTables
  let loader: TableLoader
  let keepsCurrent: Bool
  var buffer: RowBuffer

  init(
    topic: String, entity: String, tables: LayoutTables,
    delete: PostgresSinkConfiguration.DeletePolicy
  ) {
    self.topic = topic
    self.entity = entity
    self.tables = tables
    self.loader = TableLoader(history: tables.history, current: tables.current, delete: delete)
    self.keepsCurrent = tables.current != nil
    self.buffer = RowBuffer(columnCount: tables.dataColumns.count)
  }

  func recordID(ofRow row: Int) -> String? { self.text(self.buffer.rows[row].recordID) }

  /// What `_etl_resync` is told of a row that was refused.
  func deadLetter(ofRow row: Int) -> ResyncTable.Entry {
    ResyncTable.entry(.deadLetter, self.buffer, row)
  }

  func refusal(ofRow row: Int, reason: String) -> RefusedEvent {
    let row = self.buffer.rows[row]
    return RefusedEvent(
      topic: self.topic, epoch: Int(row.epoch), ordinal: row.ordinal, reason: reason)
  }

  private func text(_ range: Range<Int>) -> String? {
    range.isEmpty ? nil : String(decoding: self.buffer.bytes[range], as: UTF8.self)
  }
}
