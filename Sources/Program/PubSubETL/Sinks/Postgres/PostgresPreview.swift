import JSON
import Pipeline
import PostgresSink

/// Rows as tables that are made for them would have them.
final class PostgresPreview: LinePreview {
  private let rows: RowPreview

  init(_ configuration: PostgresSinkConfiguration) { self.rows = RowPreview(configuration) }

  func lines(ofEvent index: Int, of batch: RecordBatch) throws -> [JSONValue] {
    do {
      return try self.rows.rows(ofEvent: index, of: batch)
    } catch let error as RejectedValue {
      throw RefusedLine(reason: error.description)
    }
  }
}
