import Glibc

/// Standard error, shared by log lines and the live progress line: a log line stands above the
/// progress line, which is drawn again below it.
final class ErrorConsole: @unchecked Sendable {
  // Guard: `mutex`, held whenever `progress` is touched or something is written.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var progress = ""
  private let sink: @Sendable (String) -> Void

  /// - Parameter sink: where text goes; replaced in tests.
  init(sink: @escaping @Sendable (String) -> Void = { StandardStream.error.write($0) }) {
    self.sink = sink
    self.mutex = .allocate(capacity: 1)
    let result = pthread_mutex_init(self.mutex, nil)
    precondition(result == 0, "pthread_mutex_init: \(result)")
  }

  deinit {
    pthread_mutex_destroy(self.mutex)
    self.mutex.deallocate()
  }

  /// Writes a line of its own; the line end is added.
  func writeLine(_ line: String) {
    self.withLock {
      self.sink(self.progress.isEmpty ? "\(line)\n" : "\(Self.clear)\(line)\n\(self.progress)")
    }
  }

  /// Shows a line in place of the last one; an empty one takes it away.
  func showProgress(_ line: String) {
    self.withLock {
      guard line != self.progress else { return }
      self.progress = line
      self.sink(Self.clear + line)
    }
  }

  /// Back to the first column and erase to the end of the line (ECMA-48 EL).
  private static let clear = "\r\u{1B}[K"

  private func withLock(_ body: () -> Void) {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    body()
  }
}
