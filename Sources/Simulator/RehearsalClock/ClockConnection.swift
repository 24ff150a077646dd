internal import Glibc

/// Lines of text over a connected TCP socket, for one thread at a time. Closes the socket at its end.
package final class ClockConnection: @unchecked Sendable {
  // Guard: handed over to the one thread that uses it.

  /// A mark of a few hundred threads.
  private static let maxLineBytes = 64 << 10

  package let descriptor: Int32
  private var buffer: [UInt8] = []

  package init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var isOn: Int32 = 1
    // Answers are short and urgent. Without it they come a little later.
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(self.descriptor) }

  /// Returns false when the connection is gone.
  package func send(_ line: String) -> Bool {
    let bytes = Array((line + "\n").utf8)
    var start = 0
    while start < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          self.descriptor, $0.baseAddress?.advanced(by: start), $0.count - start,
          Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      start += count
    }
    return true
  }

  /// Waits for the next line; nil when the connection is gone, or when nothing came for so long.
  package func line(milliseconds: Int32 = -1) -> String? {
    while true {
      if let end = self.buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: self.buffer[..<end], as: UTF8.self)
        self.buffer.removeSubrange(...end)
        return line
      }
      guard self.buffer.count <= Self.maxLineBytes else { return nil }
      if milliseconds >= 0 {
        var waiting = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, milliseconds) > 0 else { return nil }
      }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = recv(self.descriptor, &chunk, chunk.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      self.buffer += chunk[..<count]
    }
  }
}
