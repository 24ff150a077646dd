import Bytes
import FileSink
import Glibc
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Lines on standard output")
struct StdoutSinkTests {
  private static func batch(rows: Int) -> RecordBatch {
    let layout = RecordLayout(
      topic: "/event/E__e", schemaID: "s", entity: "E__e", family: .platformEvent,
      slotCount: MetadataSlot.count, fieldOrder: [],
      columns: [
        Column(
          name: "_event_id", path: ["_event_id"], content: .slot(MetadataSlot.eventID, .string))
      ])
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    for ordinal in 0..<rows {
      batch.events.append(
        RecordBatch.Event(
          firstRow: batch.addRow(), rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 0),
          eventID: RecordBatch.Range(offset: 0, count: 0), commitTimestamp: nil, kind: .event,
          ordinal: Int64(ordinal)))
    }
    return batch
  }

  /// A reader's end and a writer's.
  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    try #require(Glibc.pipe(&ends) == 0)
    return (ends[0], ends[1])
  }

  /// Reads so many bytes, or up to the end.
  private static func read(_ descriptor: Int32, _ byteCount: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    var count = 0
    while count < byteCount {
      let more = bytes.withUnsafeMutableBytes {
        Glibc.read(descriptor, $0.baseAddress.map { $0 + count }, byteCount - count)
      }
      if more <= 0 { break }
      count += more
    }
    return Array(bytes.prefix(count))
  }

  @Test("A flush writes every line in the form that files have")
  func lines() async throws {
    let ends = try Self.pipe()
    defer { _ = (close(ends.read), close(ends.write)) }
    // More than a pipe holds.
    let batch = Self.batch(rows: 50_000)
    var expected = ByteBuffer()
    let encoder = NDJSONEncoder(layout: batch.layout)
    for row in 0..<50_000 { encoder.append(row: row, of: batch, to: &expected) }

    let reader = Task.detached { [count = expected.count] in Self.read(ends.read, count) }
    let sink = StdoutSink(name: "stdout", descriptor: ends.write)
    sink.recover(from: nil)
    try sink.write(batch)
    #expect(sink.pendingByteCount == expected.count)
    #expect(try sink.flush(finish: false) == ["type": "stdout"])
    #expect(await reader.value == Array(expected.bytes))
    #expect(sink.pendingByteCount == 0)
    #expect(sink.lineCount == 50_000)
    #expect(sink.writtenByteCount == expected.count)
  }

  @Test("A closed reader ends the run with exit code 74")
  func closed() throws {
    signal(SIGPIPE, SIG_IGN)
    let ends = try Self.pipe()
    defer { _ = close(ends.write) }
    close(ends.read)
    let sink = StdoutSink(name: "stdout", descriptor: ends.write)
    try sink.write(Self.batch(rows: 1))
    let failure = try #require(throws: RunFailure.self) { try sink.flush(finish: false) }
    #expect(failure.exitCode == .output)
    #expect(failure.reason == .sinkIO)
    #expect(failure.message.hasPrefix("standard output was closed by the program that reads it"))
  }

  @Test(
    "Unread lines in the pipe are not counted, whether the reader hangs or closes",
    arguments: [1, 50_000])
  func unread(rows: Int) throws {
    signal(SIGPIPE, SIG_IGN)
    for goes in [false, true] {
      let ends = try Self.pipe()
      defer { _ = close(ends.write) }
      var isClosed = false
      defer { if !isClosed { close(ends.read) } }
      var askedCount = 0
      let sink = StdoutSink(
        name: "stdout", descriptor: ends.write,
        givesUp: {
          askedCount += 1
          if goes, !isClosed {
            close(ends.read)
            isClosed = true
          }
          return !goes
        })
      let failure = try #require(throws: RunFailure.self) {
        try sink.write(Self.batch(rows: rows))
        _ = try sink.flush(finish: false)
      }
      #expect(failure.exitCode == .output)
      #expect(askedCount == 1)
      #expect(failure.message.contains(goes ? "was closed" : "has stopped reading"))
    }
  }
}
