/// Asking an HTTP proxy for a connection to a server (CONNECT, RFC 9110 section 9.3.6). No I/O.
struct ProxyTunnel {
  enum OnBytes: Equatable {
    /// The answer is not complete.
    case needsMore
    /// What follows comes from the server.
    case open
    /// The proxy said no; `reason` is its status, in printable characters.
    case refused(status: Int, reason: String)
    /// This is not an answer of an HTTP proxy.
    case malformed(String)
  }

  /// An answer to CONNECT is a few hundred bytes.
  static let maxHeadBytes = 16 << 10

  /// The bytes to send.
  let request: [UInt8]
  /// The line that is being received.
  private var line: [UInt8] = []
  private var byteCount = 0
  /// The status of the answer that is being received; nil before its first line.
  private var status: (code: Int, reason: String)?

  /// - Parameters:
  ///   - target: `host:port` of the server.
  ///   - authorization: for the proxy, nil for none.
  init(
    target: String, authorization: HTTP2ClientTransport.Configuration.Proxy.Authorization?,
    userAgent: String
  ) {
    var head = "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\nUser-Agent: \(userAgent)\r\n"
    if let authorization {
      let credentials = Array("\(authorization.user):\(authorization.password)".utf8)
      head += "Proxy-Authorization: Basic \(Self.base64(credentials))\r\n"
    }
    self.request = Array("\(head)\r\n".utf8)
  }

  /// Looks at the next bytes of the proxy.
  /// - Returns: how many belong to the answer, and what it says so far. Bytes after these are the
  ///   server's.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) -> (consumed: Int, OnBytes) {
    for (index, byte) in bytes.enumerated() {
      self.byteCount += 1
      guard self.byteCount <= Self.maxHeadBytes else {
        return (
          index, .malformed("its answer to CONNECT is longer than \(Self.maxHeadBytes) bytes")
        )
      }
      guard byte == UInt8(ascii: "\n") else {
        self.line.append(byte)
        continue
      }
      if self.line.last == UInt8(ascii: "\r") { self.line.removeLast() }
      let outcome = self.endLine()
      self.line.removeAll(keepingCapacity: true)
      if outcome != .needsMore { return (index + 1, outcome) }
    }
    return (bytes.count, .needsMore)
  }

  private mutating func endLine() -> OnBytes {
    guard let status = self.status else {
      guard let status = Self.parseStatus(self.line) else {
        return .malformed("it does not answer in HTTP")
      }
      self.status = status
      return .needsMore
    }
    guard self.line.isEmpty else { return .needsMore }  // a header field: none matters
    switch status.code {
    case 100..<200:
      self.status = nil
      return .needsMore
    case 200..<300: return .open
    default: return .refused(status: status.code, reason: status.reason)
    }
  }

  /// `HTTP/1.1 200 Connection established` (RFC 9112 section 4).
  private static func parseStatus(_ line: [UInt8]) -> (code: Int, reason: String)? {
    guard line.starts(with: Array("HTTP/1.".utf8)) else { return nil }
    let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard parts.count >= 2, parts[1].count == 3,
      let code = Int(String(decoding: parts[1], as: UTF8.self)), (100...999).contains(code)
    else { return nil }
    let reason = parts.count == 3 ? parts[2].prefix(100).filter { (0x20...0x7e).contains($0) } : []
    return (code, String(decoding: reason, as: UTF8.self))
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for index in 0..<4 {
        text.append(
          index <= group.count ? alphabet[bits >> (18 - 6 * index) & 63] : UInt8(ascii: "="))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
