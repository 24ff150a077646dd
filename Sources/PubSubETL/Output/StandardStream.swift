import Glibc

/// Standard output and standard error, unbuffered.
enum StandardStream: Int32, Sendable {
  case output = 1
  case error = 2

  var isTerminal: Bool { isatty(self.rawValue) == 1 }

  /// Columns of the terminal; nil when there is none.
  var columns: Int? {
    var size = winsize()
    guard ioctl(self.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Writes the whole text. False when the reader has gone or the disk is full.
  @discardableResult
  func write(_ text: PrintableText) -> Bool {
    var text = text.text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = Glibc.write(self.rawValue, rest.baseAddress, rest.count)
        if count < 0 {
          if errno == EINTR { continue }
          return false
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return true
    }
  }
}
