import Testing

@testable import PubSubETL

@Suite("Requests for metrics") struct MetricsRequestTests {
  private static func read(_ text: String) -> MetricsRequest.Step {
    MetricsRequest.read(Array(text.utf8))
  }

  @Test("A request is read once its head has ended, and not before")
  func dripFeed() {
    let text =
      "GET /metrics?name=x HTTP/1.1\r\nHost: a\r\nACCEPT: application/openmetrics-text;"
      + "version=1.0.0,*/*;q=0.1\r\n\r\n"
    for end in 0..<text.utf8.count {
      #expect(MetricsRequest.read(Array(text.utf8.prefix(end))) == .incomplete)
    }
    let request = MetricsRequest(method: "GET", path: "/metrics", acceptsOpenMetrics: true)
    #expect(Self.read(text) == .request(request))
    #expect(Self.read(text + "more") == .request(request))
  }

  @Test("A request without the header gets the text format")
  func plain() {
    #expect(
      Self.read("GET /healthz HTTP/1.0\r\nX-Accept: application/openmetrics-text\r\n\r\n")
        == .request(MetricsRequest(method: "GET", path: "/healthz")))
  }

  @Test(
    "Anything else is refused",
    arguments: [
      "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
      "GET / HTTP/2\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n", " / HTTP/1.1\r\n\r\n",
      "GET http://a/metrics HTTP/1.1\r\n\r\n", "GET * HTTP/1.1\r\n\r\n",
      "\u{16}\u{3}\u{1}\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ])
  func refused(text: String) { #expect(Self.read(text) == .refused(.badRequest)) }

  @Test("A head that is too large is refused before it ends")
  func large() {
    let padding = String(repeating: "a", count: MetricsRequest.maxHeadByteCount)
    let text = "GET / HTTP/1.1\r\nX: " + padding
    #expect(Self.read(text) == .refused(.tooLarge))
    #expect(Self.read(text + "\r\n\r\n") == .refused(.tooLarge))
  }
}
