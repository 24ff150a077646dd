/// Checks that the peer begins like an HTTP/2 server, with a SETTINGS frame (RFC 9113 section 3.4).
/// The library below reports anything else as an obscure error, and HTTP/1.1 not at all.
struct PeerPreface {
  private static let byteCount = 9
  private var bytes: [UInt8] = []

  var isComplete: Bool { self.bytes.count == Self.byteCount }

  /// Looks at the next bytes; returns what is wrong with the peer, if it is known by now.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard !self.isComplete else { return nil }
    self.bytes += bytes.prefix(Self.byteCount - self.bytes.count)
    if self.bytes.starts(with: Array("HTTP/".utf8)) {
      return "it answers in HTTP/1"
    }
    guard self.isComplete else { return nil }
    let isSettings = self.bytes[3] == 4 && self.bytes[4] == 0 && self.bytes[5...8] == [0, 0, 0, 0]
    guard isSettings else {
      return self.bytes[0] == 0x15 && self.bytes[1] == 3
        ? "it expects TLS" : "it does not speak HTTP/2"
    }
    return nil
  }
}
