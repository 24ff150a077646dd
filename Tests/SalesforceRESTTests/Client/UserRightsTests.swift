import OrgTestSupport
import PubSubSimulator
import SalesforceREST
import SimulatedOrg
import Testing

@Suite("Rights of the user")
struct UserRightsTests {
  @Test("The client reports which of the requested rights the user has")
  func granted() async throws {
    let org = try await OrgServer { $0.org.userPermissions = ["ModifyAllData", "ManageUsers"] }
    #expect(
      try await org.client.granted(of: ["ModifyAllData", "ViewAllData", "ApiEnabled"])
        == ["ModifyAllData", "ApiEnabled"])
    // Nobody knows a permission of that name.
    await #expect(throws: RESTError.self) {
      _ = try await org.client.granted(of: ["ModifyAllData", "FlyAway"])
    }
    await org.stop()
  }
}
