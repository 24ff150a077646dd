/// The body of a request on its way out: messages with their prefixes, handed out in pieces.
///
/// While the server has shown no sign of having looked at the request, what was handed out is kept
/// so that the request can be sent once more on another connection.
struct MessageFramer {
  /// At most this much is kept for sending again.
  static let maxReplayBytes = 256 * 1024

  /// Messages from the first that may be needed again.
  private var messages: [(bytes: [UInt8], isCompressed: Bool)] = []
  /// Index of the message being handed out, and how far, its prefix included.
  private var current = 0
  private var offset = 0
  private var keptBytes = 0

  /// Whether `rewind` is possible: nothing has been thrown away.
  private(set) var canRewind = true
  /// Bytes not handed out, prefixes included.
  private(set) var pendingByteCount = 0

  private static func size(_ message: (bytes: [UInt8], isCompressed: Bool)) -> Int {
    MessageDeframer.prefixByteCount + message.bytes.count
  }

  /// - Precondition: the message is shorter than 4 GiB.
  mutating func append(_ bytes: [UInt8], isCompressed: Bool = false) {
    precondition(bytes.count <= Int(UInt32.max), "a gRPC message has a length of 32 bits")
    self.messages.append((bytes, isCompressed))
    self.pendingByteCount += MessageDeframer.prefixByteCount + bytes.count
  }

  /// Fills `buffer` as far as there are bytes; returns how many.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var written = 0
    while written < buffer.count, self.current < self.messages.count {
      let (message, isCompressed) = self.messages[self.current]
      while self.offset < MessageDeframer.prefixByteCount, written < buffer.count {
        buffer[written] = Self.prefixByte(
          self.offset, length: message.count, isCompressed: isCompressed)
        self.offset += 1
        written += 1
      }
      let done = self.offset - MessageDeframer.prefixByteCount
      let count = min(buffer.count - written, message.count - done)
      if done >= 0, count > 0 {
        message.withUnsafeBytes { bytes in
          UnsafeMutableRawBufferPointer(rebasing: buffer[written..<written + count])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[done..<done + count]))
        }
        self.offset += count
        written += count
      }
      if self.offset == MessageDeframer.prefixByteCount + message.count { self.finishMessage() }
    }
    self.pendingByteCount -= written
    return written
  }

  /// Begins again from the first message.
  /// - Precondition: `canRewind`.
  mutating func rewind() {
    precondition(self.canRewind, "messages that were sent are gone")
    self.current = 0
    self.offset = 0
    self.keptBytes = 0
    self.pendingByteCount = self.messages.reduce(0) { $0 + Self.size($1) }
  }

  /// The server has begun to answer: nothing will be sent again.
  mutating func forgetSent() {
    self.canRewind = false
    self.messages.removeFirst(self.current)
    self.current = 0
    self.keptBytes = 0
  }

  /// Throws everything away: nobody will read it.
  mutating func clear() { self = MessageFramer() }

  private mutating func finishMessage() {
    self.offset = 0
    if self.canRewind {
      self.keptBytes += Self.size(self.messages[self.current])
      self.current += 1
      if self.keptBytes > Self.maxReplayBytes { self.forgetSent() }
    } else {
      self.current += 1
      // Removing from the front costs the rest of the array, so not each time.
      if self.current == self.messages.count || self.current >= 32 {
        self.messages.removeFirst(self.current)
        self.current = 0
      } else {
        self.messages[self.current - 1] = ([], false)
      }
    }
  }

  private static func prefixByte(_ index: Int, length: Int, isCompressed: Bool) -> UInt8 {
    index == 0 ? (isCompressed ? 1 : 0) : UInt8(truncatingIfNeeded: length >> (8 * (4 - index)))
  }
}
