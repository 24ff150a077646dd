internal import EventLoop
internal import Glibc

/// Wall-clock time that tests can move forward: days in no time.
package final class SimulatorClock: Sendable {
  private struct State {
    var offset: Int64 = 0
    /// The file that has the offset, for good.
    var file: Int32?

    func write() {
      guard let file = self.file else { return }
      let count = withUnsafeBytes(of: self.offset) { pwrite(file, $0.baseAddress, $0.count, 0) }
      // The file has its size, and whoever reads it would go on with another time.
      precondition(count == MemoryLayout<Int64>.size, "the file of the clock cannot be written")
    }
  }

  private let state = Lock(State())

  /// Epoch milliseconds.
  package var now: Int64 {
    Self.wallTime + self.state.withLock { $0.offset }
  }

  package func advance(byMilliseconds milliseconds: Int64) {
    self.state.withLock {
      $0.offset += milliseconds
      $0.write()
    }
  }

  /// Keeps in a file by how many milliseconds the clock is ahead of the machine's, as eight bytes:
  /// programs that know nothing of the simulator, such as a database, can have its time.
  func share(in path: String) throws {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard file >= 0, ftruncate(file, off_t(MemoryLayout<Int64>.size)) == 0 else {
      throw SimulatorError.system("open(\"\(path)\")")
    }
    self.state.withLock {
      $0.file = file
      $0.write()
    }
  }

  package static var wallTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
