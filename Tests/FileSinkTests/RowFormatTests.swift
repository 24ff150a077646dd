import Bytes
import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Formats of rows") struct RowFormatTests {
  /// Writes the rows, one a call, and where those of the call before began.
  private struct Places: RowFormat {
    final class Encoder: RowEncoder {
      let layout: RecordLayout
      let kind: RowKind

      init(_ layout: RecordLayout, _ kind: RowKind) { (self.layout, self.kind) = (layout, kind) }

      func append(
        _ rows: Range<Int>, of batch: RecordBatch, from origin: RowOrigin,
        to output: inout ByteBuffer, limit: Int
      ) -> Int {
        guard case .event(let epoch, let ordinal) = origin else { return rows.upperBound }
        output.append(utf8: "\(self.kind) \(epoch)/\(ordinal) \(rows.lowerBound)\n")
        return rows.lowerBound + 1
      }
    }

    let name = "places"

    func encoder(for layout: RecordLayout, of kind: RowKind) -> any RowEncoder {
      Encoder(layout, kind)
    }
  }

  @Test("Files have the bytes of the sink's format")
  func files() throws {
    let disk = ModelFileSystem()
    let sink = FileSink(
      FileSinkConfiguration(directory: "/out", pipeline: "opps", org: "00D", format: Places()),
      fileSystem: disk, clock: TestClock().sinkClock)
    try sink.recover(from: nil)
    var events = (0..<3).map { TestEvent(number: $0) }
    events[1].rowCount = 3
    for batch in TestBatches().batches(events[...], epoch: 2) { try sink.write(batch) }
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    let path = try #require(disk.files.keys.first(where: ModelFileSystem.isFinal))
    let lines = try Decompression.lines(of: disk.files[path] ?? [])
    #expect(
      lines.map { "\($0)" } == [
        "events 2/0 0", "events 2/0 1", "events 2/0 2", "events 2/0 3", "events 2/0 4",
      ])
  }
}
