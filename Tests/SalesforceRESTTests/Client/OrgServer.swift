import Foundation
import HTTPClient
import PubSubSimulator
import SalesforceREST
import SimulatedOrg
import TestSupport
import Testing

/// A simulated org with records, and a client that is logged in.
struct OrgServer {
  let server: SimulatorServer
  let client: RESTClient
  let sessions: TokenSessions
  let directory: TemporaryDirectory

  init(_ configure: (inout SimulatorConfiguration) -> Void = { _ in }) async throws {
    self.directory = try TemporaryDirectory()
    var configuration = SimulatorConfiguration()
    configuration.org.existing = 500
    configuration.org.topics = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
    configuration.org.stateDirectory = "\(self.directory.path)/state"
    configure(&configuration)
    self.server = try SimulatorServer(configuration: configuration) { Issue.record($0) }
    let addresses = try await self.server.start()
    self.sessions = TokenSessions(server: self.server, instanceURL: addresses.loginURL)
    var http = HTTPClient.Configuration(caFile: addresses.caFile)
    http.stallTimeout = .seconds(3)
    self.client = RESTClient(http: HTTPClient(http), sessions: self.sessions)
  }

  func stop() async { await self.server.stop() }

  func fault(_ json: String) async throws { try await self.server.addFaults(json: json) }

  /// Creates a job and waits until it has ended.
  func endedJob(_ statement: String) async throws -> BulkJob {
    var job = try await self.client.createJob(statement)
    while job.state == .underWay { job = try await self.client.job(job.id) }
    return job
  }
}

/// Tokens of the simulator, without a login.
actor TokenSessions: RESTSessionSource {
  private let server: SimulatorServer
  private let instanceURL: String
  private var token: String
  private(set) var refusals = 0

  init(server: SimulatorServer, instanceURL: String) {
    self.server = server
    self.instanceURL = instanceURL
    self.token = server.issueToken()
  }

  func session() -> RESTSession {
    RESTSession(accessToken: self.token, instanceURL: self.instanceURL)
  }

  func worked(_ session: RESTSession) {}

  func refused(_ session: RESTSession) -> Bool {
    self.refusals += 1
    self.token = self.server.issueToken()
    return true
  }

  func set(_ token: String) { self.token = token }
}

extension BulkPage {
  /// The rows without the header, as texts.
  func rows() async throws -> [[String]] {
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
