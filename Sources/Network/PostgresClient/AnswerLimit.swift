internal import CPQ
internal import Glibc

/// Counts what a server sends in answer to a statement, so that an answer without an end (rows,
/// values, notices or notifications) does not fill the memory.
struct AnswerLimit {
  let socket: Int32
  /// What the socket had received before; nil for a socket of the file system, which does not count.
  private let start: UInt64?
  private var estimate = 0

  init(_ socket: Int32) {
    self.socket = socket
    self.start = Self.receivedByteCount(socket)
  }

  /// Call it before each read.
  mutating func isExceeded(_ limit: Int) -> Bool {
    if let start, let count = Self.receivedByteCount(self.socket) {
      return count > start && count - start > UInt64(limit)
    }
    var waiting: Int32 = 0
    guard ioctl(self.socket, UInt(FIONREAD), &waiting) == 0 else { return false }
    // libpq reads at least so many of them at once; how many more, it does not tell.
    self.estimate += min(max(Int(waiting), 0), 8192)
    return self.estimate > limit
  }

  /// `tcpi_bytes_received` of the kernel's `tcp_info`, which that of glibc lacks.
  private static func receivedByteCount(_ socket: Int32) -> UInt64? {
    let (offset, size) = (128, 256)
    return withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { info in
      var length = socklen_t(size)
      guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
        Int(length) >= offset + MemoryLayout<UInt64>.size
      else { return nil }
      return info.load(fromByteOffset: offset, as: UInt64.self)
    }
  }
}

/// What was wrong with the server's answers, once something was. Shared by a connection and its
/// results.
final class AnswerFault {
  private(set) var error: PostgresError?

  func note(_ message: String) {
    self.error =
      self.error
      ?? PostgresError(
        .resources,
        "postgres: \(message), which a PostgreSQL server does not send; check that host and port "
          + "in url lead to your server, and not to another program")
  }
}

extension PostgresConnection {
  /// Takes the notifications that have come. This program listens to nothing, so a server has no
  /// reason to send one, and libpq keeps them until somebody takes them.
  func dropNotifications() {
    while let notification = PQnotifies(self.connection) { PQfreemem(notification) }
  }
}
