internal import EventLoop

/// A login whose tokens are all for one org, and that reports each token before it is used.
package struct SameOrgFlow<Flow: AccessTokenFlow>: AccessTokenFlow {
  private let flow: Flow
  private let onToken: @Sendable (AccessToken) -> Void
  private let onRenewal: @Sendable (AccessToken) -> Void
  /// The org of the first token.
  private let org = Lock<String?>(nil)

  /// - Parameters:
  ///   - onToken: receives every token, before anybody else does. From any thread.
  ///   - onRenewal: receives every token but the first. From any thread.
  package init(
    _ flow: Flow, onToken: @escaping @Sendable (AccessToken) -> Void = { _ in },
    onRenewal: @escaping @Sendable (AccessToken) -> Void = { _ in }
  ) {
    self.flow = flow
    self.onToken = onToken
    self.onRenewal = onRenewal
  }

  package var isRenewedElsewhere: Bool { self.flow.isRenewedElsewhere }
  package var replacesSecrets: Bool { self.flow.replacesSecrets }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    let answer = try await self.flow.obtain()
    self.onToken(answer.token)
    let first = self.org.withLock { org -> String? in
      defer { org = org ?? answer.token.organizationID }
      return org
    }
    guard let first else { return answer }
    guard first == answer.token.organizationID else {
      throw AuthError(
        .configuration,
        "the new token is for org \(answer.token.organizationID), but the run began with org \(first); "
          + "nothing of the other org is written; run again")
    }
    self.onRenewal(answer.token)
    return answer
  }
}
