import EventLoop
import Testing

@testable import SalesforceAuth

@Suite("A login restricted to one org")
struct SameOrgFlowTests {
  /// Gives the tokens of a list, one after the other.
  private struct ListedFlow: AccessTokenFlow {
    let organizations: [String]
    var replacesSecrets = false
    var isRenewedElsewhere = false
    let count = Lock(0)

    func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
      let number = self.count.withLock { count in
        defer { count += 1 }
        return count
      }
      let id = try #require(OrganizationID(self.organizations[number]))
      return (
        try AccessToken(
          value: "t\(number)", instanceURL: "https://org.example", organizationID: id), nil
      )
    }
  }

  private static let org = "00DXX0000000001AAA"
  private static let other = "00DXX0000000002AAA"

  @Test("Every token is reported, and every one but the first as a renewal")
  func reports() async throws {
    let tokens = Lock<[String]>([])
    let renewals = Lock<[String]>([])
    let flow = SameOrgFlow(
      ListedFlow(organizations: [Self.org, Self.org]),
      onToken: { token in tokens.withLock { $0.append(token.value) } },
      onRenewal: { token in renewals.withLock { $0.append(token.value) } })
    for _ in 0..<2 { _ = try await flow.obtain() }
    #expect(tokens.withLock { $0 } == ["t0", "t1"])
    #expect(renewals.withLock { $0 } == ["t1"])
  }

  @Test("A token for another org is refused, and not reported as a renewal")
  func refusesAnotherOrg() async throws {
    let renewals = Lock(0)
    let flow = SameOrgFlow(
      ListedFlow(organizations: [Self.org, Self.other]),
      onRenewal: { _ in renewals.withLock { $0 += 1 } })
    _ = try await flow.obtain()
    let error = await #expect(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error?.code == .configuration)
    #expect(renewals.withLock { $0 } == 0)
  }

  @Test("A login that replaces its secret is marked, so that the process waits until it is stored")
  func forwards() {
    let plain = SameOrgFlow(ListedFlow(organizations: []))
    #expect(!plain.replacesSecrets && !plain.isRenewedElsewhere)
    let replacing = SameOrgFlow(ListedFlow(organizations: [], replacesSecrets: true))
    #expect(replacing.replacesSecrets && !replacing.isRenewedElsewhere)
    let renewed = SameOrgFlow(ListedFlow(organizations: [], isRenewedElsewhere: true))
    #expect(!renewed.replacesSecrets && renewed.isRenewedElsewhere)
  }
}
