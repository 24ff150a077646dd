import SalesforceAuth
import SalesforceREST

/// The sessions of REST calls, of the login that everything else uses.
struct OrgSessions: RESTSessionSource {
  let provider: AccessTokenProvider
  /// A call that is refused asks for a new token, and counts as a refusal of this one.
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
