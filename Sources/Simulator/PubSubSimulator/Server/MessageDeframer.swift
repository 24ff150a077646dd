internal import SimulatedOrg

/// Cuts the gRPC messages of one stream out of its bytes: 1 byte compressed flag, 4 bytes big-endian length.
struct MessageDeframer {
  enum Failure: Error, Equatable {
    case compressed
    case tooLarge
  }

  /// Larger requests are refused (TheService.md#publishing).
  static let maxMessageBytes = 4 << 20

  private var bytes: [UInt8] = []
  private var start = 0

  mutating func append(_ bytes: [UInt8]) {
    if self.start > 0 {
      self.bytes.removeFirst(self.start)
      self.start = 0
    }
    self.bytes += bytes
  }

  /// The next complete message.
  mutating func next() throws(Failure) -> [UInt8]? {
    guard self.bytes.count - self.start >= 5 else { return nil }
    if self.bytes[self.start] != 0 { throw .compressed }
    let count = self.bytes[(self.start + 1)..<(self.start + 5)].reduce(0) { $0 << 8 | Int($1) }
    if count > Self.maxMessageBytes { throw .tooLarge }
    guard self.bytes.count - self.start >= 5 + count else { return nil }
    let message = Array(self.bytes[(self.start + 5)..<(self.start + 5 + count)])
    self.start += 5 + count
    return message
  }

  /// Appends the prefix and the message.
  static func frame(_ message: some Collection<UInt8>, to bytes: inout [UInt8]) {
    Self.appendPrefix(count: message.count, to: &bytes)
    bytes += message
  }

  static func appendPrefix(count: Int, to bytes: inout [UInt8]) {
    bytes.append(0)
    withUnsafeBytes(of: UInt32(count).bigEndian) { bytes.append(contentsOf: $0) }
  }
}
