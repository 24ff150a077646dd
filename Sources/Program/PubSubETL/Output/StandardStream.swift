import Glibc

/// Standard output, unbuffered, and standard error, which nobody waits for.
enum StandardStream: Int32, Sendable {
  case output = 1
  case error = 2

  var isTerminal: Bool { isatty(self.rawValue) == 1 }

  /// Whether colors are shown: on a terminal, unless its user does not want them (no-color.org).
  func isColored(_ environment: Environment = .process) -> Bool {
    self.isTerminal && environment.variable("TERM") != "dumb"
      && (environment.variable("NO_COLOR") ?? "").isEmpty
  }

  /// The size of the terminal; that of an old one if there is none or it does not say.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(self.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return (80, 24)
    }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
  }

  /// The caller of the program may have closed a stream: the next file or socket would get its number,
  /// and what is printed. What takes its place can be neither read nor written.
  static func occupyClosed() {
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest number that is free.
      _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Writes the complete text to standard output, after the messages that came before it.
  ///
  /// - Throws: `RunFailure` if the reader has closed it or the disk is full.
  static func print(_ text: PrintableText) throws(RunFailure) {
    MessageWriter.standardError.letGoFirst()
    guard let code = text.write(to: Self.output.rawValue, patience: nil) else { return }
    throw RunFailure(
      .output, "standard output cannot be written: \(String(cString: strerror(code)))")
  }

  /// Writes a message on standard error, soon.
  static func tell(_ text: PrintableText) { MessageWriter.standardError.write(text) }

  /// Whether there is somebody to answer questions.
  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Self.error.isTerminal }

  /// The user's answer on the terminal, without its line end; nil if there is none.
  static func ask(_ question: PrintableText) -> String? {
    guard isatty(STDIN_FILENO) == 1 else { return nil }
    MessageWriter.standardError.write(question)
    guard MessageWriter.standardError.drain(within: .seconds(60)) else { return nil }
    return readLine()
  }

  /// Asks on the terminal; true if the user answers with yes.
  static func confirm(_ question: PrintableText) -> Bool {
    self.ask(question).map { ["y", "yes"].contains($0.lowercased()) } ?? false
  }
}
