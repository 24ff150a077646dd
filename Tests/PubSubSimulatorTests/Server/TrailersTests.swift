import Testing

@testable import PubSubSimulator

@Suite("Trailers")
struct TrailersTests {
  @Test(
    "A message is printable ASCII with everything else percent-encoded",
    arguments: [
      ("plain text", "plain text"), ("100 %", "100 %25"), ("ü\n", "%C3%BC%0A"), ("~\u{7f}", "~%7F"),
    ])
  func percentEncoding(text: String, encoded: String) {
    #expect(CallContext.percentEncoded(text) == encoded)
  }
}
