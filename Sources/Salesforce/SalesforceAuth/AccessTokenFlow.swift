/// One way to get an access token.
package protocol AccessTokenFlow: Sendable {
  /// Asks once, without retries. Throws `AuthError`, or `CancellationError`.
  /// - Returns: `serverDate` is the server's clock by the answer's `Date` header, in seconds since
  ///   1970; nil when there is none.
  func obtain() async throws -> (token: AccessToken, serverDate: Int64?)

  /// True when somebody else renews the token, so that to obtain one that was rejected before means
  /// that it was not renewed. False by default: a login service may well repeat a token.
  var isRenewedElsewhere: Bool { get }

  /// True when a login may replace what the next one needs, so that one that has begun must not be
  /// abandoned without need. False by default.
  var replacesSecrets: Bool { get }
}

extension AccessTokenFlow {
  package var isRenewedElsewhere: Bool { false }
  package var replacesSecrets: Bool { false }
}
