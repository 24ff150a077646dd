import JSON

@testable import SalesforceAuth

/// A token that another program writes into a JSON document together with the URL of its org:
/// `{"access_token": "…", "instance_url": "https://acme.my.salesforce.com"}`.
struct TokenDocumentFlow: AccessTokenFlow {
  private let read: @Sendable () throws -> [UInt8]
  private let organizationID: String?

  /// - Parameters:
  ///   - read: reads the document each time.
  ///   - organizationID: 15 or 18 characters; nil to take it from the token.
  init(organizationID: String?, read: @escaping @Sendable () throws -> [UInt8]) {
    self.read = read
    self.organizationID = organizationID
  }

  /// A token that the service has refused is of no use until the other program has replaced it.
  var isRenewedElsewhere: Bool { true }

  func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    let document: JSONValue
    do {
      document = try JSONValue(parsing: try self.read())
    } catch {
      // The parser names line and column, never the content.
      throw AuthError(.configuration, "the token document cannot be used: \(error)")
    }
    guard let value = document["access_token"]?.string,
      let instanceURL = document["instance_url"]?.string
    else {
      throw AuthError(
        .configuration,
        "the token document has to have the texts access_token and instance_url")
    }
    let organizationID = try OrganizationID.choose(
      configured: self.organizationID, identityURL: nil, accessToken: value)
    // Checks both: what is empty, too long or not printable is refused here.
    let token = try AccessToken(
      value: value, instanceURL: instanceURL, organizationID: organizationID)
    return (token, nil)
  }
}

// A flow holds secrets, so no form of printing shows what it has.
extension TokenDocumentFlow: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  var description: String { "token document (redacted)" }
  var debugDescription: String { self.description }
  var customMirror: Mirror { Mirror(self, children: []) }
}
