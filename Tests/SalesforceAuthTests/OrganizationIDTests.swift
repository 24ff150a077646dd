import Testing

@testable import SalesforceAuth

@Suite("Organization IDs")
struct OrganizationIDTests {
  @Test("An ID of 15 characters gets its check characters") func fifteen() {
    #expect(OrganizationID("001Dp00000JJkkH")?.text == "001Dp00000JJkkHIAT")
    #expect(OrganizationID("000000000000000")?.text == "000000000000000AAA")
    #expect(OrganizationID("ABCDEFGHIJKLMNO")?.text == "ABCDEFGHIJKLMNO555")
  }

  @Test("An ID of 18 characters is kept") func eighteen() {
    #expect(OrganizationID("001Dp00000JJkkHIAT")?.text == "001Dp00000JJkkHIAT")
  }

  @Test(
    "Other texts are refused",
    arguments: [
      "", "00D", "001Dp00000JJkk!", "001Dp00000JJkkHI", "001Dp00000JJkké", " 01Dp00000JJkkH",
    ])
  func otherTexts(_ text: String) {
    #expect(OrganizationID(text) == nil)
  }

  @Test("Configuration takes precedence over the identity URL, and that over the token")
  func precedence() throws {
    func choose(_ configured: String?, _ identityURL: String?, _ token: String) throws -> String {
      try OrganizationID.choose(
        configured: configured, identityURL: identityURL, accessToken: token
      ).text
    }
    let identity = "https://login.salesforce.com/id/00DXX0000000002AAA/005xx0000012345AAA?a=b/c/d"
    let token = "00DXX0000000003!x"
    #expect(try choose("00DXX0000000001", identity, token) == "00DXX00000000012AA")
    #expect(try choose(nil, identity, token) == "00DXX0000000002AAA")
    #expect(try choose(nil, "https://x/id", token) == "00DXX00000000032AA")
    for (configured, token) in [("wrong", token), (nil, "a.b.c"), (nil, "!x"), (nil, "short!x")] {
      let error = try #require(throws: AuthError.self) { _ = try choose(configured, nil, token) }
      #expect(error.code == .configuration)
    }
  }
}
