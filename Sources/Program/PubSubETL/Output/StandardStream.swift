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

  /// Writes the complete text to standard output, after the messages that came before it. False when the
  /// reader has closed it or the disk is full. A message on standard error is written soon, and true
  /// returned.
  @discardableResult
  func write(_ text: PrintableText) -> Bool {
    switch self {
    case .output:
      MessageWriter.standardError.letGoFirst()
      return text.write(to: self.rawValue, patience: nil) == nil
    case .error:
      MessageWriter.standardError.write(text)
      return true
    }
  }

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
