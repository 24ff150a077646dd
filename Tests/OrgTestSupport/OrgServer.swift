import HTTPClient
package import PubSubSimulator
package import SalesforceREST
import SimulatedOrg
package import TestSupport

/// A simulated org with records, and a client that is logged in.
package struct OrgServer {
  package let server: SimulatorServer
  package let client: RESTClient
  package let sessions: TokenSessions
  package let directory: TemporaryDirectory
  /// The variables with which pipeline files find the org.
  package let environment: [String: String]

  package init(_ configure: (inout SimulatorConfiguration) -> Void = { _ in }) async throws {
    self.directory = try TemporaryDirectory()
    var configuration = SimulatorConfiguration()
    configuration.org.existing = 500
    configuration.org.topics = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
    configuration.org.stateDirectory = "\(self.directory.path)/state"
    configure(&configuration)
    self.server = try SimulatorServer(configuration: configuration) { error in
      preconditionFailure("the simulator cannot go on: \(error)")
    }
    let addresses = try await self.server.start()
    self.environment = Dictionary(
      uniqueKeysWithValues: self.server.environment(addresses).variables.map { ($0.name, $0.value) }
    )
    self.sessions = TokenSessions(server: self.server, instanceURL: addresses.loginURL)
    var http = HTTPClient.Configuration(caFile: addresses.caFile)
    http.stallTimeout = .seconds(3)
    self.client = RESTClient(http: HTTPClient(http), sessions: self.sessions)
  }

  package func stop() async { await self.server.stop() }

  package func fault(_ json: String) async throws { try await self.server.addFaults(json: json) }

  /// Creates a job and waits until it has ended.
  package func endedJob(_ statement: String) async throws -> BulkJob {
    var job = try await self.client.createJob(statement)
    while job.state == .underWay { job = try await self.client.job(job.id) }
    return job
  }
}

/// Tokens of the simulator, without a login.
package actor TokenSessions: RESTSessionSource {
  private let server: SimulatorServer
  private let instanceURL: String
  private var token: String
  package private(set) var refusals = 0

  init(server: SimulatorServer, instanceURL: String) {
    self.server = server
    self.instanceURL = instanceURL
    self.token = server.issueToken()
  }

  package func session() -> RESTSession {
    RESTSession(accessToken: self.token, instanceURL: self.instanceURL)
  }

  package func worked(_ session: RESTSession) {}

  package func refused(_ session: RESTSession) -> Bool {
    self.refusals += 1
    self.token = self.server.issueToken()
    return true
  }

  package func set(_ token: String) { self.token = token }
}

extension BulkPage {
  /// The rows without the header, as texts.
  package func rows() async throws -> [[String]] {
    var reader = CSVReader()
    var rows: [[String]] = []
    func read(_ reader: inout CSVReader) throws {
      while true {
        switch try reader.next() {
        case .header: continue
        case .row:
          rows.append(
            reader.withRow { row in
              (0..<row.count).map { String(decoding: row[$0], as: UTF8.self) }
            })
        case .needsBytes, .end: return
        }
      }
    }
    while let piece = try await self.body.next() {
      piece.withUnsafeBytes { reader.append($0) }
      try read(&reader)
    }
    reader.finish()
    try read(&reader)
    return rows
  }
}
