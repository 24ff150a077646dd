internal import GRPCCore

/// A message as it came in.
struct ReceivedMessage: Equatable {
  var bytes: [UInt8]
  var isCompressed = false

  /// What it took of the windows.
  var wireByteCount: Int { MessageDeframer.prefixByteCount + self.bytes.count }
}

/// Cuts the body of a response into messages: each is a flag byte, a length of four bytes in
/// network order, and that many bytes (gRPC over HTTP/2, "Length-Prefixed-Message").
struct MessageDeframer {
  static let prefixByteCount = 5

  private let maxMessageBytes: Int
  /// Whether the response names a compression, which its messages may then use.
  var acceptsCompressed = false
  private var prefix: (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0)
  private var prefixCount = 0
  private var message: [UInt8] = []
  private(set) var hasReceivedBytes = false
  /// The length of the message begun; meaningful once the prefix is complete.
  private var length = 0

  init(maxMessageBytes: Int) { self.maxMessageBytes = maxMessageBytes }

  /// Whether the body may end here.
  var isBetweenMessages: Bool { self.prefixCount == 0 }

  /// Takes the next bytes of the body, wherever they were cut, and calls `deliver` for every
  /// message that they complete. Every byte is copied once, into an array of the exact size.
  /// - Throws: `resourceExhausted` for a message above the limit, before memory is taken for it;
  ///   `internalError` for a compressed message when the response names no compression.
  mutating func receive(
    _ bytes: UnsafeRawBufferPointer, _ deliver: (consuming ReceivedMessage) -> Void
  ) throws(RPCError) {
    if !bytes.isEmpty { self.hasReceivedBytes = true }
    var offset = 0
    while offset < bytes.count {
      if self.prefixCount < Self.prefixByteCount {
        let index = self.prefixCount
        withUnsafeMutableBytes(of: &self.prefix) { $0[index] = bytes[offset] }
        self.prefixCount += 1
        offset += 1
        guard self.prefixCount == Self.prefixByteCount else { continue }
        try self.beginMessage()
      }
      let count = min(bytes.count - offset, self.length - self.message.count)
      self.message.append(
        contentsOf: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
      offset += count
      if self.message.count == self.length {
        var complete: [UInt8] = []
        swap(&complete, &self.message)
        self.prefixCount = 0
        deliver(ReceivedMessage(bytes: complete, isCompressed: self.prefix.0 == 1))
      }
    }
  }

  private mutating func beginMessage() throws(RPCError) {
    guard self.prefix.0 == 0 || (self.prefix.0 == 1 && self.acceptsCompressed) else {
      throw RPCError(
        code: .internalError,
        message: self.prefix.0 == 1
          ? "The server sent a compressed message without naming the compression."
          : "The server sent a message with the unknown flag \(self.prefix.0).")
    }
    let length =
      Int(self.prefix.1) << 24 | Int(self.prefix.2) << 16 | Int(self.prefix.3) << 8
      | Int(self.prefix.4)
    guard length <= self.maxMessageBytes else {
      throw RPCError(
        code: .resourceExhausted,
        message: "The server sent a message of \(length) bytes; at most \(self.maxMessageBytes) "
          + "are accepted.")
    }
    self.length = length
    self.message.reserveCapacity(length)
  }
}
