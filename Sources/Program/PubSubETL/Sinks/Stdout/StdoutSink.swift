import Bytes
import FileSink
import Glibc
import JSON
import Pipeline

/// Rows as lines on a descriptor that others read.
///
/// Lines go out before the checkpoint knows of them, and cannot be taken back: after a run that did
/// not end in order the next one writes those again that no checkpoint had counted. None is left out:
/// what is in a pipe is not counted before it has been read.
final class StdoutSink: BufferingSink {
  let name: String
  /// Lines encoded so far.
  private(set) var lineCount = 0
  /// Bytes the descriptor has taken.
  private(set) var writtenByteCount = 0
  private(set) var pendingByteCount = 0

  private let descriptor: Int32
  private let isPipe: Bool
  private let format: any RowFormat
  /// Called while the sink waits for the reader; true stops the wait.
  private let givesUp: () -> Bool
  private var encoders = LayoutCache<any RowEncoder>()
  private var lines = ByteBuffer(capacity: StdoutSink.bufferByteCount * 2)

  /// The number of buffered bytes at which lines are written.
  private static let bufferByteCount = 1 << 16

  /// What a pipe takes without blocking once it is said to be writable (`PIPE_BUF`).
  private static let pipeByteCount = 4096

  /// - Parameter givesUp: true ends the run instead of waiting for the reader any longer.
  init(
    name: String, descriptor: Int32, format: any RowFormat = NDJSONFormat(),
    givesUp: @escaping () -> Bool = { false }
  ) {
    self.name = name
    self.descriptor = descriptor
    self.format = format
    self.givesUp = givesUp
    var status = stat()
    self.isPipe = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// Does nothing: what was written is with its reader.
  func recover(from state: JSONValue?) {}

  func write(_ batch: RecordBatch) throws {
    guard !batch.events.isEmpty else { return }
    let encoder = self.encoder(
      for: batch.layout, of: batch.isRedriven ? .placedEvents : .events)
    for index in batch.events.indices {
      let event = batch.events[index]
      var rows = event.rows
      while !rows.isEmpty {
        let before = self.lines.count
        let end = encoder.append(
          rows, of: batch, from: .event(epoch: batch.epoch, ordinal: event.ordinal),
          to: &self.lines, limit: Self.bufferByteCount)
        rows = end..<rows.upperBound
        self.pendingByteCount += self.lines.count - before
        if self.lines.count >= Self.bufferByteCount { try self.drain() }
      }
      self.lineCount += event.rowCount
    }
  }

  /// Afterwards the reader has every line, or the disk where standard output is a file.
  func flush(finish: Bool) throws -> JSONValue {
    try self.drain()
    try self.waitForReader()
    self.pendingByteCount = 0
    // Pipes and terminals have nothing to bring to a disk.
    if fdatasync(self.descriptor) != 0, errno != EINVAL, errno != EROFS {
      throw Self.failure(errno)
    }
    return ["type": .string(StdoutSettings.type)]
  }

  func committed() -> Bool { false }

  var isDue: Bool { false }

  /// - Parameter kind: the same for all batches of a process.
  private func encoder(for layout: RecordLayout, of kind: RowKind) -> any RowEncoder {
    if let encoder = self.encoders[layout] { return encoder }
    let encoder = self.format.encoder(for: layout, of: kind)
    self.encoders.insert(encoder, for: layout)
    return encoder
  }

  private func drain() throws {
    defer { self.lines.removeAll() }
    var rest = UnsafeRawBufferPointer(self.lines.bytes)
    while !rest.isEmpty {
      if self.isPipe { try self.waitUntilWritable() }
      let count = Glibc.write(
        self.descriptor, rest.baseAddress,
        self.isPipe ? min(rest.count, Self.pipeByteCount) : rest.count)
      if count >= 0 {
        self.writtenByteCount += count
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        continue
      }
      switch errno {
      case EINTR: continue
      // Another holder of the descriptor has made it non-blocking.
      case EAGAIN: try self.waitUntilWritable()
      case let code: throw Self.failure(code)
      }
    }
  }

  private func waitUntilWritable() throws {
    var descriptor = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
    while poll(&descriptor, 1, 200) <= 0 { try self.checkPatience() }
  }

  /// Waits until the pipe is empty: a line that nobody has read may be lost with its reader.
  private func waitForReader() throws {
    guard self.isPipe else { return }
    var unread: Int32 = 0
    var descriptor = pollfd(fd: self.descriptor, events: 0, revents: 0)
    while ioctl(self.descriptor, UInt(FIONREAD), &unread) == 0, unread > 0 {
      // Comes back at once when the reader has closed the pipe.
      guard poll(&descriptor, 1, 1) == 0 else { throw Self.failure(EPIPE) }
      try self.checkPatience()
    }
  }

  private func checkPatience() throws {
    guard self.givesUp() else { return }
    throw RunFailure(
      .sinkIO,
      "the program that reads standard output has stopped reading; the next run will write the "
        + "lines since the last commit again")
  }

  private static func failure(_ code: Int32) -> RunFailure {
    let reason = String(cString: strerror(code))
    return RunFailure(
      .sinkIO,
      code == EPIPE
        ? "standard output was closed by the program that reads it (\(reason)); the next run will "
          + "write the lines since the last commit again"
        : "standard output cannot be written: \(reason)")
  }
}

extension StdoutSink: MeasuredSink {
  func count(in entry: inout RunReport.Sink) {
    entry.rows = Int64(self.lineCount)
    entry.bytes = Int64(self.writtenByteCount)
    entry.counted = .rows(place: "on standard output")
  }
}
