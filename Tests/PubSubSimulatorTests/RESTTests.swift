import Foundation
import PubSubSimulator
import SimulatedOrg
import TestSupport
import Testing

/// `simple-salesforce`, unchanged, against the REST API of a running simulator.
@Suite("A REST client", .serialized)
struct RESTTests {
  @Test("A REST client reads every record and column of the org, and encounters every fault")
  func reads() async throws {
    try await self.run([
      "query_and_bulk_agree", "api_equals_state", "components_are_parts", "conditions", "refusals",
      "retrieval", "jobs", "faults", "limits",
    ]) { _ in }
  }

  @Test("A REST client sees neither hidden nor not yet visible records")
  func sees() async throws {
    try await self.run(["hidden", "later"]) {
      $0.org.unshared = 0.3
      $0.org.hiddenFields = ["Opportunity.NextStep"]
      $0.org.visibilityDelay = 90_000
    }
  }

  private func run(
    _ checks: [String], _ configure: (inout SimulatorConfiguration) -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    var configuration = SimulatorConfiguration()
    configuration.org.existing = 1500
    configuration.org.events = 3000
    configuration.org.topics = ["/data/ChangeEvents"]
    configuration.org.stateDirectory = "\(directory.path)/state"
    configure(&configuration)
    let server = try SimulatorServer(configuration: configuration) { Issue.record($0) }
    let addresses = try await server.start()
    let environment = [
      "PUBSUB_CA_FILE": addresses.caFile ?? "", "SF_LOGIN_URL": addresses.loginURL,
      "SF_CLIENT_ID": configuration.org.clientID,
      "SF_CLIENT_SECRET": configuration.org.clientSecret,
      "SIMULATOR_CONTROL_URL": addresses.controlURL,
      "SIMULATOR_CONTROL_SECRET": addresses.controlSecret,
    ]
    let (status, output) = try await PythonScript("check_rest.py").run(checks, environment)
    await server.stop()
    #expect(status == 0, "\(output)")
    #expect(output == checks.map { "ok \($0)\n" }.joined(), "\(output)")
  }
}
