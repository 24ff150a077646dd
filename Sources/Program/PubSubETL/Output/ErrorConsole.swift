import EventLoop

/// Standard error, shared by log lines and the live progress line: a log line stands above the
/// progress line, which is drawn again below it.
final class ErrorConsole: Sendable {
  /// The line that is shown; held while something is written.
  private let progress = Lock<PrintableText?>(nil)
  private let sink: @Sendable (PrintableText, _ isPassing: Bool) -> Void

  /// - Parameter sink: where text goes; replaced in tests.
  init(
    sink: @escaping @Sendable (PrintableText, _ isPassing: Bool) -> Void = {
      MessageWriter.standardError.write($0, isPassing: $1)
    }
  ) {
    self.sink = sink
  }

  /// Writes a line, which brings its end.
  func write(_ line: PrintableText) {
    self.progress.withLock { progress in
      self.sink(progress.map { PrintableText.lineEraser + line + $0 } ?? line, false)
    }
  }

  /// Shows a line without its end in place of the last one; nil takes it away.
  func showProgress(_ line: PrintableText?) {
    self.progress.withLock { progress in
      guard line != progress else { return }
      progress = line
      self.sink(PrintableText.lineEraser + (line ?? .empty), line != nil)
    }
  }
}
