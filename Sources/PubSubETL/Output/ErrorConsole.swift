import Glibc

/// Standard error, shared by log lines and the live progress line: a log line stands above the
/// progress line, which is drawn again below it.
final class ErrorConsole: @unchecked Sendable {
  // Guard: `mutex`, held whenever `progress` is touched or something is written.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var progress: PrintableText?
  private let sink: @Sendable (PrintableText) -> Void

  /// - Parameter sink: where text goes; replaced in tests.
  init(sink: @escaping @Sendable (PrintableText) -> Void = { StandardStream.error.write($0) }) {
    self.sink = sink
    self.mutex = .allocate(capacity: 1)
    let result = pthread_mutex_init(self.mutex, nil)
    precondition(result == 0, "pthread_mutex_init: \(result)")
  }

  deinit {
    pthread_mutex_destroy(self.mutex)
    self.mutex.deallocate()
  }

  /// Writes a line, which brings its end.
  func write(_ line: PrintableText) {
    self.withLock {
      self.sink(self.progress.map { PrintableText.lineEraser + line + $0 } ?? line)
    }
  }

  /// Shows a line without its end in place of the last one; nil takes it away.
  func showProgress(_ line: PrintableText?) {
    self.withLock {
      guard line != self.progress else { return }
      self.progress = line
      self.sink(line.map { PrintableText.lineEraser + $0 } ?? PrintableText.lineEraser)
    }
  }

  private func withLock(_ body: () -> Void) {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    body()
  }
}
