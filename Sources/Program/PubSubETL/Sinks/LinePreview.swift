internal import Bytes
import FileSink
import JSON
import Pipeline

/// What a sink would write, line by line or row by row, without writing it.
protocol LinePreview: AnyObject {
  /// - Parameter index: into the batch's events, which are behind the sink's own stages.
  /// - Throws: `RefusedLine` for an event that the sink would refuse.
  func lines(ofEvent index: Int, of batch: RecordBatch) throws -> [JSONValue]
}

/// Why a sink would refuse an event, without values.
struct RefusedLine: Error {
  var reason: String
}

/// Lines as files and standard output have them.
final class NDJSONPreview: LinePreview {
  private let options: NDJSONOptions
  private var encoders = LayoutCache<NDJSONEncoder>()

  init(_ options: NDJSONOptions = NDJSONOptions()) { self.options = options }

  func lines(ofEvent index: Int, of batch: RecordBatch) throws -> [JSONValue] {
    let encoder =
      self.encoders[batch.layout] ?? NDJSONEncoder(layout: batch.layout, options: self.options)
    self.encoders.insert(encoder, for: batch.layout)
    let event = batch.events[index]
    return try (event.firstRow..<event.firstRow + event.rowCount).map { row in
      var line = ByteBuffer(capacity: 1024)
      encoder.append(row: row, of: batch, to: &line)
      return try JSONValue(parsing: Array(line.bytes))
    }
  }
}
