package import Bytes
package import Pipeline

/// A format of rows. Makes an encoder for each layout, so that rows need no decision.
package protocol RowFormat: Sendable {
  /// Distinguishes formats whose lines must not be in one file.
  var name: String { get }

  func encoder(for layout: RecordLayout, of kind: RowKind) -> any RowEncoder
}

/// The rows that an encoder gets.
package enum RowKind: Sendable {
  case events
  /// Events whose place in the stream is written, too.
  case placedEvents
  /// Records that were read.
  case reads
}

/// Turns rows of one layout into bytes. Used by one thread at a time.
package protocol RowEncoder: AnyObject {
  var layout: RecordLayout { get }

  /// Appends rows of one placed event, of one record that was read, or of consecutive events whose
  /// place is not written.
  ///
  /// - Parameters:
  ///   - rows: of a batch whose layout is the encoder's; not empty.
  ///   - origin: of the first row.
  ///   - limit: no row is begun once the output has so many bytes, except the first.
  /// - Returns: the end of the rows that were appended.
  func append(
    _ rows: Range<Int>, of batch: RecordBatch, from origin: RowOrigin,
    to output: inout ByteBuffer, limit: Int
  ) -> Int
}

/// What is known of a row besides its cells.
package enum RowOrigin: Sendable {
  /// The place of an event in the stream of its topic.
  case event(epoch: Int, ordinal: Int64)
  case read(Read)

  package struct Read: Sendable {
    /// When the records were requested, milliseconds since 1970.
    package var readAt: Int64
    /// The epoch of the last event taken before the record was written.
    package var epoch: Int
    /// Negative if there was none.
    package var lastOrdinal: Int64
    /// `SystemModstamp` of the record, milliseconds since 1970.
    package var stamp: Int64 = 0
  }
}

extension RecordBatch.Event {
  /// The numbers of its rows.
  package var rows: Range<Int> { self.firstRow..<self.firstRow + self.rowCount }
}
