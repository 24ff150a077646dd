internal import GRPCCore

/// The credentials of every call: the token, where it was issued, and the org.
///
/// Prints without the token.
public struct Credentials: Sendable, Hashable {
  /// The secret: a Salesforce access token, without `Bearer`.
  public var accessToken: String
  /// Scheme and host, such as `https://example.my.salesforce.com`, without a trailing slash.
  public var instanceURL: String
  /// ID of the org, 15 or 18 characters.
  public var tenantID: String

  /// - Parameters:
  ///   - accessToken: visible ASCII.
  ///   - instanceURL: scheme and host, without a trailing slash.
  ///   - tenantID: ID of the org, 15 or 18 characters.
  public init(accessToken: String, instanceURL: String, tenantID: String) {
    self.accessToken = accessToken
    self.instanceURL = instanceURL
    self.tenantID = tenantID
  }

  /// Lowercase keys, no `Bearer` (TheService.md#connecting).
  var metadata: Metadata {
    [
      "accesstoken": .string(self.accessToken),
      "instanceurl": .string(self.instanceURL),
      "tenantid": .string(self.tenantID),
    ]
  }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "Credentials(accessToken: <redacted>, instanceURL: \(self.instanceURL), tenantID: \(self.tenantID))"
  }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "accessToken": "<redacted>", "instanceURL": self.instanceURL, "tenantID": self.tenantID,
      ])
  }
}

/// The source of credentials for calls. Shared by all streams of a run.
public protocol CredentialsSource: Sendable {
  /// The current credentials, obtained if there are none. Concurrent callers share one login.
  ///
  /// Throws `PubSubError` with code `credentials` or `credentialsRetryable`.
  func credentials() async throws -> Credentials

  /// Call this when the service has accepted these credentials: a call was answered and did not end
  /// with their refusal, or has lasted for long.
  func worked(_ credentials: Credentials) async

  /// Call this when these credentials were refused: the next call of `credentials()` obtains
  /// others, unless somebody has already done so.
  ///
  /// - Returns: false if others would be refused as well, as those of the latest logins were.
  func refused(_ credentials: Credentials) async -> Bool
}
