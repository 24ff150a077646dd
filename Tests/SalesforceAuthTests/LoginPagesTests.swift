import FoundationEssentials
import Testing

@Suite("Pages about logins")
struct LoginPagesTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let pages = "Sources/Salesforce/SalesforceAuth/SalesforceAuth.docc"

  private static func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: Self.root.appending(path: path)), as: UTF8.self)
  }

  /// The sources of the modules that print these messages, with the pieces of split literals joined.
  private static func sources() throws -> String {
    var text = ""
    for folder in [
      "Salesforce/SalesforceAuth", "Base/Cryptography", "Program/PubSubETL/Configuration",
    ] {
      let path = Self.root.appending(path: "Sources/\(folder)").path
      for name in try FileManager.default.contentsOfDirectory(atPath: path).sorted()
      where name.hasSuffix(".swift") {
        text += try Self.text("Sources/\(folder)/\(name)")
      }
    }
    return text.replacing(#/"\s*\+ "/#, with: "")
  }

  @Test(
    "The program prints every message that a page explains",
    arguments: [
      ("LoginClientCredentials", 9), ("LoginJWTBearer", 13), ("LoginRefreshToken", 9),
      ("LoginSalesforceCLI", 10),
    ])
  func messages(page: String, count: Int) throws {
    let sources = try Self.sources()
    let table = try #require(
      Self.text("\(Self.pages)/\(page).md").split(separator: "## Errors").last)
    let messages = table.split(separator: "\n").compactMap { line in
      line.hasPrefix("| `") ? line.dropFirst(3).prefix { $0 != "`" } : nil
    }
    #expect(messages.count == count)
    for message in messages { #expect(sources.contains(message), "\(message)") }
  }

  @Test("The overview links every page")
  func links() throws {
    let overview = try Self.text("\(Self.pages)/Logins.md")
    for page in ["ClientCredentials", "JWTBearer", "RefreshToken", "SalesforceCLI"] {
      #expect(overview.contains("(Login\(page).md)"))
    }
  }
}
