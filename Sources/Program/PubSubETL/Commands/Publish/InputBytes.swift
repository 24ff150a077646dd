import Clocks
import EventLoop
import Glibc

/// The bytes of standard input or a file, read ahead by a dedicated thread as far as there is room.
/// Has one consumer.
final class InputBytes: Sendable {
  enum Piece: Sendable {
    case bytes([UInt8])
    case end
    /// The input cannot be read.
    case failed(SystemCallError)
    /// `interrupt` was called.
    case interrupted
    /// Nothing came before the deadline.
    case nothing
  }

  private struct State {
    var bytes: [UInt8] = []
    /// The reason why nothing follows the bytes; nil while more may come.
    var end: Piece?
    var isReading = false
    var isInterrupted = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// The maximum number of bytes read ahead.
  private static let capacity = 1 << 20
  private static let pieceSize = 1 << 16

  private let descriptor: Int32
  /// A pipe; a byte written to it ends the wait for input.
  private let wakeup: (read: Int32, write: Int32)
  private let thread: EventLoop
  private let clock = ProcessClock()
  private let state = Lock(State())

  /// - Parameter descriptor: stays open until the process ends.
  init(_ descriptor: Int32) throws {
    self.descriptor = descriptor
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemCallError("pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.wakeup = (ends[0], ends[1])
    // A dedicated thread, because its work blocks.
    self.thread = try EventLoop(name: "input", clock: self.clock)
  }

  /// Returns what has arrived, as soon as there is anything.
  ///
  /// - Parameter deadline: nil waits without a limit; a past deadline does not wait.
  func next(until deadline: ContinuousClock.Instant?) async -> Piece {
    self.readOn()
    var timer: Task<Void, Never>?
    defer { timer?.cancel() }
    while true {
      if let piece = self.taken() { return piece }
      if let deadline {
        guard self.clock.now < deadline else { return .nothing }
        timer =
          timer
          ?? Task { [clock] in
            // The only error is cancellation, which means that the wait is over.
            try? await clock.sleep(until: deadline)
            self.wake()
          }
      }
      await withCheckedContinuation { continuation in
        let mustWait = self.state.withLock { state in
          let isLate = deadline.map { self.clock.now >= $0 } ?? false
          guard state.bytes.isEmpty, state.end == nil, !state.isInterrupted, !isLate else {
            return false
          }
          state.waiter = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    }
  }

  /// Stops reading; `next` no longer waits.
  func interrupt() {
    self.state.withLock { $0.isInterrupted = true }
    var byte: UInt8 = 0
    _ = write(self.wakeup.write, &byte, 1)
    self.wake()
  }

  private func taken() -> Piece? {
    self.state.withLock { state in
      if state.isInterrupted { return .interrupted }
      guard state.bytes.isEmpty else {
        defer { state.bytes = [] }
        return .bytes(state.bytes)
      }
      return state.end
    }
  }

  private func wake() { self.state.withLock { $0.waiter.take() }?.resume() }

  /// Makes the thread read if it is idle and there is room.
  private func readOn() {
    let mustRead = self.state.withLock { state in
      guard !state.isReading, state.end == nil, !state.isInterrupted,
        state.bytes.count < Self.capacity
      else { return false }
      state.isReading = true
      return true
    }
    if mustRead { self.thread.execute { self.readPiece() } }
  }

  /// Runs on the thread.
  private func readPiece() {
    var waits = [
      pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: self.wakeup.read, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&waits, 2, -1) < 0, errno == EINTR {}
    var piece = [UInt8](repeating: 0, count: Self.pieceSize)
    var count = 0
    var failure: SystemCallError?
    if waits[1].revents == 0 {
      repeat {
        count = read(self.descriptor, &piece, piece.count)
      } while count < 0 && errno == EINTR
      if count < 0, errno != EAGAIN { failure = SystemCallError("read") }
    } else {
      count = -1
    }
    let isBlocked = count < 0 && failure == nil
    self.state.withLock { state in
      state.isReading = false
      if count > 0 {
        state.bytes += piece[..<count]
      } else if let failure {
        state.end = .failed(failure)
      } else if !isBlocked {
        state.end = .end
      }
    }
    self.wake()
    self.readOn()
  }
}
