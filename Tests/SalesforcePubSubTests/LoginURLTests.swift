import Testing

@testable import SalesforcePubSub

@Suite("Login URLs of the library")
struct LoginURLTests {
  @Test("A URL that was copied from the browser is a configuration error that names My Domain")
  func copied() throws {
    let error = try #require(throws: ConfigurationError.self) {
      _ = try ConfigurationError.loginAddress(
        "https://acme.lightning.force.com/lightning/page/home")
    }
    #expect(error.message.contains("loginURL: acme.lightning.force.com"))
    #expect(error.message.hasSuffix("use https://acme.my.salesforce.com"))
  }

  @Test("A site is accepted for users whose audience it is")
  func site() throws {
    let site = "https://acme.my.site.com"
    _ = try ConfigurationError.loginAddress(site, audience: site)
    #expect(throws: ConfigurationError.self) { _ = try ConfigurationError.loginAddress(site) }
  }
}
