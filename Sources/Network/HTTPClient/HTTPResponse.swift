internal import CCurl

/// An answer with any status: those that report errors are answers too.
///
/// Prints without headers and body, which may hold secrets.
package struct HTTPResponse: Sendable {
  package var status: Int
  /// In the order received, names as sent.
  package var headers: [(name: String, value: String)]
  /// Decompressed.
  package var body: [UInt8]

  package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The first value of a header, whose name is compared without case.
  package func header(_ name: String) -> String? {
    self.headers.first { Self.isSameName($0.name, name) }?.value
  }

  /// The server's clock by its `Date` header, in seconds since 1970 (RFC 9110 section 6.6.1); nil without
  /// one, and after the year 9999.
  package var date: Int64? {
    guard let text = self.header("Date") else { return nil }
    let seconds = curl_getdate(text, nil)
    return (0...Self.lastSecond).contains(Int64(seconds)) ? Int64(seconds) : nil
  }

  /// 9999-12-31T23:59:59Z.
  private static let lastSecond: Int64 = 253_402_300_799

  private static func isSameName(_ left: String, _ right: String) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 {
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
    return left.utf8.elementsEqual(right.utf8) { lower($0) == lower($1) }
  }
}

extension HTTPResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "HTTP \(self.status), \(self.body.count) bytes" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: ["response": self.description]) }
}
