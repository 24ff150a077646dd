internal import Glibc

extension PrintableText {
  /// The most that a pipe with room takes without waiting (pipe(7), PIPE_BUF).
  private static let pipeByteCount = 4096

  /// Writes the complete text, also to a descriptor that whoever shares it has made non-blocking.
  ///
  /// - Parameter patience: how long a reader may read nothing; nil for ever.
  /// - Returns: the error number; nil after a success. `ETIMEDOUT` when nobody reads.
  func write(to descriptor: Int32, patience: Duration?) -> Int32? {
    var text = self.text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        if let patience, !Self.waitForRoom(descriptor, patience) { return ETIMEDOUT }
        let most = patience == nil ? rest.count : min(rest.count, Self.pipeByteCount)
        let count = Glibc.write(descriptor, rest.baseAddress, most)
        if count < 0 {
          let code = errno
          if code == EINTR { continue }
          guard code == EAGAIN else { return code }
          if patience == nil { _ = Self.waitForRoom(descriptor, nil) }
          continue
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return nil
    }
  }

  /// Returns false if no room becomes free within the time. The next write reports an error of the descriptor.
  private static func waitForRoom(_ descriptor: Int32, _ patience: Duration?) -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    let milliseconds = patience.map { Int32(clamping: Int64($0 / .milliseconds(1))) } ?? -1
    while true {
      let count = Glibc.poll(&poll, 1, milliseconds)
      if count < 0, errno == EINTR { continue }
      return count != 0
    }
  }
}
