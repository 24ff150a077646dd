import Testing

@testable import HTTPClient

@Suite("ServiceAddress")
struct ServiceAddressTests {
  @Test(
    "Scheme, host and port are read",
    arguments: [
      ("https://api.pubsub.salesforce.com:7443", "https://api.pubsub.salesforce.com:7443"),
      ("https://Acme.my.salesforce.com/", "https://acme.my.salesforce.com"),
      ("https://acme:443", "https://acme"), ("http://localhost:8080", "http://localhost:8080"),
      ("http://127.0.0.1", "http://127.0.0.1"), ("http://127.255.0.9:1", "http://127.255.0.9:1"),
      ("http://[::1]:5", "http://[::1]:5"), ("https://[2001:db8::1]", "https://[2001:db8::1]"),
    ])
  func reads(text: String, url: String) throws {
    #expect(try ServiceAddress(parsing: text).url == url)
  }

  @Test(
    "Anything else is refused, and the error does not quote it",
    arguments: [
      "", "acme", "ftp://acme", "HTTPS//acme", "https://", "https://:443", "https://a:0",
      "https://a:65536", "https://a:x", "https://a:", "https://a:+1", "https://a b",
      "https://user:hidden@acme", "https://acme/services", "https://acme?x=1", "https://acme#x",
      "https://[::1", "https://[::1]x", "https://[acme]", "https://acmé",
      "http://acme.my.salesforce.com", "http://127.0.0.1.evil.com", "http://127.0.0",
      "http://128.0.0.1",
      "http://127.0.0.256", "http://localhost.evil.com", "http://[::2]", "http://127.0.0.+1",
    ])
  func refuses(text: String) {
    let error = #expect(throws: ServiceAddress.ParseError.self) {
      try ServiceAddress(parsing: text)
    }
    #expect(error?.description.contains("hidden") == false)
  }
}
