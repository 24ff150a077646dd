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

  /// The caller of the program may have closed a stream: the next file or socket would get its number,
  /// and what is printed. What takes its place can be neither read nor written.
  static func occupyClosed() {
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest number that is free.
      _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Writes the whole text. False when the reader has closed it or the disk is full.
  @discardableResult
  func write(_ text: PrintableText) -> Bool {
    var text = text.text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = Glibc.write(self.rawValue, rest.baseAddress, rest.count)
        if count < 0 {
          if errno == EINTR { continue }
          // Whoever shares the pipe or terminal may have made it non-blocking.
          guard errno == EAGAIN else { return false }
          var poll = pollfd(fd: self.rawValue, events: Int16(POLLOUT), revents: 0)
          _ = Glibc.poll(&poll, 1, -1)
          continue
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return true
    }
  }
}
