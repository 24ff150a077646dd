import FoundationEssentials
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Static tokens")
struct StaticTokenFlowTests {
  let directory: TemporaryDirectory
  let file: String
  init() throws {
    self.directory = try TemporaryDirectory()
    self.file = "\(self.directory.path)/token"
  }

  func write(_ text: String) throws { try Data(text.utf8).write(to: URL(filePath: self.file)) }

  func flow(
    instanceURL: String = "https://a.example/", organizationID: String? = nil
  ) -> StaticTokenFlow {
    let file = self.file
    return StaticTokenFlow(
      token: { String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self) },
      instanceURL: instanceURL, organizationID: organizationID)
  }

  @Test("The token is read without its line end") func lineEnd() async throws {
    try self.write(" 001Dp00000JJkkH!abc\r\n")
    let (token, date) = try await self.flow().obtain()
    #expect(token.value == "001Dp00000JJkkH!abc")
    #expect(token.instanceURL == "https://a.example")
    #expect(token.organizationID == "001Dp00000JJkkHIAT")
    #expect(date == nil)
  }

  @Test("A rejected token has to be renewed") func rejected() async throws {
    try self.write("001Dp00000JJkkH!old")
    let provider = AccessTokenProvider(self.flow())
    await provider.refused(try await provider.token().value)
    let error = try await #require(throws: AuthError.self) { _ = try await provider.token() }
    #expect(error.code == .refused)
    #expect(error.message.contains("renew it"))
    try self.write("001Dp00000JJkkH!new")
    #expect(try await provider.token().value == "001Dp00000JJkkH!new")
  }

  @Test(
    "An unusable token is not kept", arguments: ["", " \n", "00D a", "{\n}", "00DXX0000000001!é"])
  func unusable(_ text: String) async throws {
    try self.write(text)
    let provider = AccessTokenProvider(self.flow())
    let error = try await #require(throws: AuthError.self) { _ = try await provider.token() }
    #expect(error.code == .configuration)
    try self.write("001Dp00000JJkkH!abc")
    #expect(try await provider.token().value == "001Dp00000JJkkH!abc")
  }

  @Test("A token without organization ID requires a configured one") func noOrg() async throws {
    try self.write("aaa.bbb.ccc")
    let error = try await #require(throws: AuthError.self) { _ = try await self.flow().obtain() }
    #expect(error.code == .configuration)
    #expect(error.message.contains("org_id"))
    let (token, _) = try await self.flow(organizationID: "001Dp00000JJkkHIAT").obtain()
    #expect(token.organizationID == "001Dp00000JJkkHIAT")
  }

  @Test(
    "An unusable instance URL is refused",
    arguments: ["", "a.example", "http://a.example", "ftp://a.example"])
  func badURLs(_ url: String) async throws {
    try self.write("001Dp00000JJkkH!abc")
    let flow = self.flow(instanceURL: url)
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .configuration)
  }

  @Test("A missing file is reported with the reader's own message") func missingFile() async throws
  {
    let provider = AccessTokenProvider(self.flow())
    await #expect(throws: CocoaError.self) { _ = try await provider.token() }
  }
}
