internal import GRPCCore
package import PubSubAPI
package import SalesforceAuth

/// The logins of one org as credentials for calls.
package struct LoginCredentials: CredentialsSource {
  private let provider: AccessTokenProvider

  package init(_ provider: AccessTokenProvider) { self.provider = provider }

  package func credentials() async throws -> Credentials {
    do {
      let token = try await self.provider.token()
      return Credentials(
        accessToken: token.value, instanceURL: token.instanceURL, tenantID: token.organizationID)
    } catch let error as AuthError {
      throw PubSubError(
        error.isTransient ? .credentialsRetryable : .credentials,
        status: .unauthenticated, "\(error)", cause: error)
    }
  }

  package func worked(_ credentials: Credentials) async {
    await self.provider.worked(credentials.accessToken)
  }

  package func refused(_ credentials: Credentials) async -> Bool {
    await self.provider.refused(credentials.accessToken)
  }
}
