import SalesforceAuth
import SalesforceREST

/// The sessions of REST calls, from the login that everything else uses.
struct OrgSessions: RESTSessionSource {
  let provider: AccessTokenProvider
  /// Whether a refused call counts as a refusal of its token and requests a new one.
  var renews = true

  func session() async throws -> RESTSession {
    do {
      let token = try await self.provider.token()
      return RESTSession(accessToken: token.value, instanceURL: token.instanceURL)
    } catch let error as AuthError {
      throw RESTError(error.isTransient ? .retry : .login, error.message)
    }
  }

  func worked(_ session: RESTSession) async {
    if self.renews { await self.provider.worked(session.accessToken) }
  }

  func refused(_ session: RESTSession) async -> Bool {
    guard self.renews else { return false }
    return await self.provider.refused(session.accessToken)
  }
}
