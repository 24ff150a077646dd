import HTTPClient
public import PubSubSimulator
public import SalesforceREST
import SimulatedOrg
public import TestSupport

/// A simulated org with records, and a client that is logged in.
public struct OrgServer {
  public let server: SimulatorServer
  public let client: RESTClient
  public let sessions: TokenSessions
  public let directory: TemporaryDirectory
  /// The variables with which pipeline files find the org.
  public let environment: [String: String]

  public init(_ configure: (inout SimulatorConfiguration) -> Void = { _ in }) async throws {
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

  public func stop() async { await self.server.stop() }

  public func fault(_ json: String) async throws { try await self.server.addFaults(json: json) }

  /// Creates a job and waits until it has ended.
  public func endedJob(_ statement: String) async throws -> BulkJob {
    var job = try await self.client.createJob(statement)
    while job.state == .underWay { job = try await self.client.job(job.id) }
    return job
  }
}

/// Tokens of the simulator, without a login.
public actor TokenSessions: RESTSessionSource {
  private let server: SimulatorServer
  private let instanceURL: String
  private var token: String
  public private(set) var refusals = 0

  init(server: SimulatorServer, instanceURL: String) {
    self.server = server
    self.instanceURL = instanceURL
    self.token = server.issueToken()
  }

  public func session() -> RESTSession {
    RESTSession(accessToken: self.token, instanceURL: self.instanceURL)
  }

  public func worked(_ session: RESTSession) {}

  public func refused(_ session: RESTSession) -> Bool {
    self.refusals += 1
    self.token = self.server.issueToken()
    return true
  }

  public func set(_ token: String) { self.token = token }
}

extension BulkPage {
  /// The rows without the header, as texts.
  public func rows() async throws -> [[String]] {
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
