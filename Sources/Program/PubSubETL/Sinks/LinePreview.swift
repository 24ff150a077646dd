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
final class LinesPreview: LinePreview {
  private let format: NDJSONFormat
  private var encoders = LayoutCache<any RowEncoder>()

  init(_ format: NDJSONFormat = NDJSONFormat()) { self.format = format }

  func lines(ofEvent index: Int, of batch: RecordBatch) throws -> [JSONValue] {
    let encoder =
      self.encoders[batch.layout] ?? self.format.encoder(for: batch.layout, of: .events)
    self.encoders.insert(encoder, for: batch.layout)
    let event = batch.events[index]
    return try event.rows.map { row in
      var line = ByteBuffer(capacity: 1024)
      _ = encoder.append(
        row..<row + 1, of: batch, from: .event(epoch: batch.epoch, ordinal: event.ordinal),
        to: &line, limit: .max)
      return try JSONValue(parsing: Array(line.bytes))
    }
  }
}
