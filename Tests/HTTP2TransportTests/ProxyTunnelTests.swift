import Testing

@testable import HTTP2Transport

@Suite("Proxy tunnel")
struct ProxyTunnelTests {
  typealias Authorization = HTTP2ClientTransport.Configuration.Proxy.Authorization

  func tunnel(_ authorization: Authorization? = nil) -> ProxyTunnel {
    ProxyTunnel(target: "a.example:7443", authorization: authorization, userAgent: "test/1")
  }

  /// What the proxy said, and what is left for the server, when its bytes come `size` at a time.
  func outcome(_ text: String, by size: Int) -> (outcome: ProxyTunnel.OnBytes, rest: String) {
    var tunnel = self.tunnel()
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: size) {
      let piece = Array(bytes[start..<min(start + size, bytes.count)])
      let (consumed, outcome) = piece.withUnsafeBytes { tunnel.receive($0) }
      if outcome != .needsMore {
        return (outcome, String(decoding: bytes[(start + consumed)...], as: UTF8.self))
      }
      #expect(consumed == piece.count)
    }
    return (.needsMore, "")
  }

  @Test("The CONNECT request names the server") func request() {
    let text = String(decoding: self.tunnel().request, as: UTF8.self)
    #expect(
      text
        == "CONNECT a.example:7443 HTTP/1.1\r\nHost: a.example:7443\r\nUser-Agent: test/1\r\n\r\n")
  }

  @Test(
    "The CONNECT request carries the user and the password",
    arguments: [
      ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("a", "", "YTo="),
      ("u", "p", "dTpw"), ("ü", "~", "w7w6fg=="), ("aa", "??>", "YWE6Pz8+"),
    ])
  func credentials(user: String, password: String, encoded: String) {
    let request = self.tunnel(Authorization(user: user, password: password)).request
    let text = String(decoding: request, as: UTF8.self)
    #expect(text.contains("\r\nProxy-Authorization: Basic \(encoded)\r\n\r\n"))
  }

  @Test("The password is not printed") func redaction() {
    let authorization = Authorization(user: "me", password: "s3cret")
    let proxy = HTTP2ClientTransport.Configuration.Proxy(
      host: "p", port: 1, authorization: authorization)
    var dumped = ""
    dump(proxy, to: &dumped)
    for text in ["\(authorization)", "\(proxy)", String(reflecting: proxy), dumped] {
      #expect(!text.contains("s3cret"))
    }
  }

  @Test(
    "The proxy's answer is read, and no byte beyond it",
    arguments: [
      ("HTTP/1.1 200 Connection established\r\n\r\nrest", ProxyTunnel.OnBytes.open, "rest"),
      ("HTTP/1.0 200\r\nVia: x\r\nContent-Length: 7\r\n\r\nrest", .open, "rest"),
      ("HTTP/1.1 299 x\n\nrest", .open, "rest"),
      (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", .open,
        ""
      ),
      (
        "HTTP/1.1 407 Who are\u{7} you\r\n\r\nbody", .refused(status: 407, reason: "Who are you"),
        "body"
      ),
      ("HTTP/1.1 301 Moved\r\nLocation: x\r\n\r\n", .refused(status: 301, reason: "Moved"), ""),
      ("HTTP/1.1 502\r\n\r\n", .refused(status: 502, reason: ""), ""),
      ("220 mail.example\r\n", .malformed("it does not answer in HTTP"), ""),
      ("\r\n\r\n", .malformed("it does not answer in HTTP"), "\r\n"),
      ("HTTP/1.1 2000 OK\r\n", .malformed("it does not answer in HTTP"), ""),
      ("HTTP/1.1 +20 OK\r\n", .malformed("it does not answer in HTTP"), ""),
      ("HTTP/1.1 099 OK\r\n", .malformed("it does not answer in HTTP"), ""),
      ("HTTP/2 200 OK\r\n", .malformed("it does not answer in HTTP"), ""),
    ])
  func answer(
    text: String, expected: ProxyTunnel.OnBytes, rest: String
  ) {
    for size in 1...text.utf8.count {
      let found = self.outcome(text, by: size)
      #expect(found.outcome == expected)
      #expect(found.rest == rest)
    }
  }

  @Test("Every prefix of an answer is incomplete") func prefixes() {
    let text = Array("HTTP/1.1 200 OK\r\nVia: x\r\n\r\n".utf8)
    for count in 0..<text.count {
      let prefix = String(decoding: text.prefix(count), as: UTF8.self)
      #expect(self.outcome(prefix, by: 3).outcome == .needsMore)
    }
  }

  @Test(
    "The length of an answer is limited",
    arguments: ["HTTP/1.1 200 OK\r\n", "", "HTTP/1.1 100 a\r\n\r\n"])
  func limit(beginning: String) {
    let flood = beginning + String(repeating: "X: a\r\n", count: 10_000)
    let long = beginning + String(repeating: "a", count: 20_000)
    for text in [long] + (beginning.hasSuffix("OK\r\n") ? [flood] : []) {
      guard case .malformed(let problem) = self.outcome(text, by: 1000).outcome else {
        Issue.record("accepted")
        return
      }
      #expect(problem.contains("longer than"))
    }
  }
}
