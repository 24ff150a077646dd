import EventLoop

/// Standard error, shared by log lines and the live progress: a log line appears above the progress,
/// which is drawn again below it.
final class ErrorConsole: Sendable {
  /// The lines that are shown, the last one without its end; held while something is written.
  private let progress = Lock(PrintableText.empty)
  private let sink: @Sendable (PrintableText, _ isPassing: Bool) -> Bool

  /// - Parameter sink: where text goes; false for text that it drops. Replaced in tests.
  init(
    sink: @escaping @Sendable (PrintableText, _ isPassing: Bool) -> Bool = {
      MessageWriter.standardError.write($0, isPassing: $1)
    }
  ) {
    self.sink = sink
  }

  /// Whether standard error is a terminal that can erase lines.
  static func canErase(_ environment: Environment = .process) -> Bool {
    StandardStream.error.isTerminal && environment.variable("TERM") != "dumb"
  }

  /// Writes a line, which brings its end.
  func write(_ line: PrintableText) {
    self.progress.withLock { progress in
      _ = self.sink(
        progress == .empty
          ? line : PrintableText.eraser(lineCount: progress.lineCount) + line + progress, false)
    }
  }

  /// Shows lines, the last one without its end, in place of the last ones; nil takes them away.
  func showProgress(_ lines: PrintableText?) {
    self.progress.withLock { progress in
      let lines = lines ?? .empty
      guard lines != progress else { return }
      let text = PrintableText.eraser(lineCount: progress.lineCount) + lines
      // What was dropped is not on the terminal, and must not be erased there.
      if self.sink(text, lines != .empty) || lines == .empty { progress = lines }
    }
  }
}
