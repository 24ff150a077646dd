import GRPCCore
import PubSubAPI
import SalesforceAuth
import Testing

@testable import SalesforcePubSub

@Suite("Logins as credentials for calls")
struct LoginCredentialsTests {
  private struct FailingFlow: AccessTokenFlow {
    let error: AuthError
    func obtain() async throws -> (token: AccessToken, serverDate: Int64?) { throw self.error }
  }

  @Test(
    "A failed login is an error of the service that says whether to retry",
    arguments: [
      (AuthError.Code.unavailable, PubSubError.Code.credentialsRetryable),
      (.exhausted, .credentialsRetryable), (.refused, .credentials), (.untrusted, .credentials),
      (.configuration, .credentials),
    ])
  func failures(code: AuthError.Code, expected: PubSubError.Code) async throws {
    let login = LoginCredentials(AccessTokenProvider(FailingFlow(error: AuthError(code, "no"))))
    let error = await #expect(throws: PubSubError.self) { _ = try await login.credentials() }
    #expect(error?.code == expected)
    #expect(error?.status == .unauthenticated)
    #expect(error?.message == "no")
  }

  @Test("A token that the service refuses is replaced")
  func renews() async throws {
    let login = LoginCredentials(
      AccessTokenProvider(
        StaticTokenFlow(
          token: { "00DXX0000000001!a" }, instanceURL: "https://org.example", organizationID: nil)))
    let first = try await login.credentials()
    #expect(first.tenantID == "00DXX00000000012AA")
    #expect(await login.refused(first))
    // Whoever gives the token has not renewed it.
    await #expect(throws: PubSubError.self) { _ = try await login.credentials() }
  }
}
