internal import Bytes
internal import DurableFiles
internal import EventLoop

/// Compresses, hashes and writes lines on a thread of its own, in the order in which they were handed
/// over.
///
/// The thread of the sink hands over pieces. Until `drain` returns, what `SegmentWriter.write` uses
/// of their files belongs to the other thread. Everything else, and the files from then on, belongs
/// to the thread of the sink: it synchronizes, commits and finishes files while nothing is on its
/// way.
final class WriterThread {
  /// Lines on their way, beyond which the thread of the sink waits. A commit waits for all of them,
  /// which takes 1 to 2 ms.
  static let maxByteCount = 1 << 20
  /// Lines on their way, from which on the writer is woken, because each time costs both threads.
  private let wakingByteCount: Int

  private struct State {
    /// In order. The first one is being written.
    var queue: [LinePiece] = []
    var byteCount = 0
    var free: [LinePiece] = []
    /// Nothing is written after it.
    var failure: FileSystemError?
    var isStopped = false
    /// The writer waits for a piece.
    var isIdle = true
    /// The thread of the sink waits until no more than this is on its way.
    var awaitedByteCount: Int?
  }

  private enum Work {
    case write(LinePiece)
    case drop(LinePiece)
    case stop
  }

  private let monitor = Monitor(State())
  private var hasStarted = false

  /// - Parameter wakingByteCount: the number of bytes from which on lines are not kept back.
  init(wakingByteCount: Int) { self.wakingByteCount = wakingByteCount }

  /// Drops what is on its way, and waits until no file is in use by the other thread. To be called
  /// while the sink has its lock, because the next run opens the files.
  func stop() {
    guard self.hasStarted else { return }
    self.monitor.withLock { $0.isStopped = true }
    self.monitor.wake()
    self.wait(for: 0)
  }

  /// Takes a piece and leaves an empty one. Waits while too much is on its way.
  ///
  /// - Returns: false if the system has no thread left; the piece is as it was then.
  /// - Throws: the error of an earlier piece.
  func take(_ piece: inout LinePiece) throws(FileSystemError) -> Bool {
    guard self.start() else { return false }
    let taken = piece
    let isFull = self.monitor.withLock { state in
      state.queue.append(taken)
      state.byteCount += taken.lines.count
      if state.isIdle, state.byteCount >= self.wakingByteCount { self.monitor.wake() }
      return state.byteCount > Self.maxByteCount
    }
    // Waiting costs as much, so it is to last.
    if isFull { self.wait(for: Self.maxByteCount / 2) }
    let (next, failure) = self.monitor.withLock { ($0.free.popLast(), $0.failure) }
    piece = next ?? LinePiece()
    if let failure { throw failure }
    return true
  }

  /// Waits until everything that was handed over is written.
  ///
  /// - Throws: the error of one of the pieces.
  func drain() throws(FileSystemError) {
    guard self.hasStarted else { return }
    self.wait(for: 0)
    if let failure = self.monitor.withLock({ $0.failure }) { throw failure }
  }

  private func wait(for byteCount: Int) {
    self.monitor.wait { state -> Void? in
      // A piece may have no bytes.
      let isReached = byteCount > 0 ? state.byteCount <= byteCount : state.queue.isEmpty
      state.awaitedByteCount = isReached ? nil : byteCount
      if !isReached, state.isIdle { self.monitor.wake() }
      return isReached ? () : nil
    }
  }

  private func start() -> Bool {
    if self.hasStarted { return true }
    let monitor = self.monitor
    do {
      try Thread.detach(name: "writer") { Self.run(monitor) }
    } catch {
      return false
    }
    self.hasStarted = true
    return true
  }

  // MARK: The other thread

  private static func run(_ monitor: Monitor<State>) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ZstdCompressor.outputByteCount, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      var failure: FileSystemError?
      let work = monitor.wait { state -> Work? in
        if state.isStopped, state.queue.isEmpty { return .stop }
        state.isIdle = state.queue.isEmpty
        guard let piece = state.queue.first else { return nil }
        return state.isStopped || state.failure != nil ? .drop(piece) : .write(piece)
      }
      let piece: LinePiece
      switch work {
      case .stop: return
      case .drop(let dropped): piece = dropped
      case .write(let written):
        piece = written
        do throws(FileSystemError) {
          try piece.write(through: buffer)
        } catch {
          failure = error
        }
      }
      let byteCount = piece.lines.count
      piece.removeAll()
      monitor.withLock { state in
        state.queue.removeFirst()
        state.byteCount -= byteCount
        state.free.append(piece)
        state.failure = state.failure ?? failure
        guard let awaited = state.awaitedByteCount,
          state.byteCount <= awaited, awaited > 0 || state.queue.isEmpty
        else { return }
        state.awaitedByteCount = nil
        monitor.wake()
      }
    }
  }
}
