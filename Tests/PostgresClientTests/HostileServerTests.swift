import PostgresClient
import TestSupport
import Testing

@Suite("Servers that answer as none should") struct HostileServerTests {
  private func connect(
    _ kind: String, _ change: (inout PostgresConnectionConfiguration) -> Void = { _ in }
  ) throws -> (PythonServer, PostgresConnection) {
    let server = try PythonServer("hostile_postgres.py", [kind])
    var configuration = PostgresConnectionConfiguration(
      url: "postgresql://postgres@127.0.0.1:\(server.port)/x")
    change(&configuration)
    return (server, try PostgresConnection(configuration))
  }

  @Test(
    "A row or column that the server leaves out is nil, and no statement follows",
    arguments: ["none", "narrow"])
  func missing(_ kind: String) throws {
    let (server, connection) = try self.connect(kind)
    defer { withExtendedLifetime(server) {} }
    let result = try connection.query("SELECT 1, 2")
    try connection.checkAnswers()
    #expect(result[0, 1] == nil)
    #expect(!connection.isConnected && connection.transactionStatus == .unknown)
    #expect(postgresError { try connection.checkAnswers() }?.disposition == .resources)
    let error = postgresError { try connection.execute("COMMIT") }
    #expect(error?.disposition == .resources)
    #expect(error?.message.contains("column 2 is missing") == true, "\(error?.message ?? "")")
    try connection.reset()
    try connection.execute("COMMIT")
    let binary = try connection.queryBinary("SELECT 1, 2")
    #expect(binary.withField(7, 0) == nil && binary.withField(-1, 0) == nil)
    #expect(!connection.isConnected)
  }

  @Test(
    "An answer without an end closes the connection after a bounded number of bytes",
    arguments: [
      "endless-rows", "endless-notices", "endless-notifications", "endless-results", "huge",
    ])
  func endless(_ kind: String) throws {
    let (server, connection) = try self.connect(kind) { $0.maxAnswerBytes = 4 << 20 }
    defer { withExtendedLifetime(server) {} }
    for _ in 1...2 {
      let error = postgresError { try connection.query("SELECT 1") }
      #expect(error?.disposition == .resources)
      #expect(error?.message.contains("larger than 4 MB") == true, "\(error?.message ?? "")")
      #expect(!connection.isConnected)
      try connection.reset()
    }
  }

  @Test("An answer without an end is bounded over a socket of the file system, too")
  func endlessOverSocket() throws {
    let folder = try TemporaryDirectory()
    let server = try PythonServer("hostile_postgres.py", ["endless-rows", "0", folder.path])
    var configuration = PostgresConnectionConfiguration(
      url: "host=\(folder.path) port=\(server.port) user=x dbname=x")
    configuration.maxAnswerBytes = 4 << 20
    let connection = try PostgresConnection(configuration)
    let error = postgresError { try connection.query("SELECT 1") }
    #expect(error?.message.contains("larger than 4 MB") == true, "\(error?.message ?? "")")
  }

  @Test("A server that stops answering is noticed by a second connection, not by the time limit")
  func stopped() throws {
    let (server, connection) = try self.connect("mute-1") {
      $0.silenceTimeout = .milliseconds(20)
      // libpq's shortest limit.
      $0.connectTimeout = .seconds(2)
      $0.statementTimeout = .zero
    }
    defer { withExtendedLifetime(server) {} }
    try connection.execute("SELECT 1")
    let error = postgresError { try connection.execute("SELECT 2") }
    #expect(error?.sqlState == "08006" && error?.disposition == .retry)
    let since = try #require(error?.silentSince)
    #expect(ContinuousClock.now - since >= .milliseconds(20))
    #expect(!connection.isConnected)
  }

  @Test("A server that takes a login and answers no statement, or no BEGIN, is noticed")
  func mute() throws {
    let (server, connection) = try self.connect("mute") { $0.silenceTimeout = .milliseconds(5) }
    defer { withExtendedLifetime(server) {} }
    #expect(postgresError { try connection.execute("SELECT 1") }?.sqlState == "08006")
    let (other, begun) = try self.connect("slow") { $0.silenceTimeout = .milliseconds(200) }
    defer { withExtendedLifetime(other) {} }
    try begun.execute("SELECT 1")
    #expect(postgresError { try begun.begin() }?.disposition == .retry)
  }

  @Test("A server that takes logins and answers no statement on them counts as silent")
  func stalled() throws {
    let (server, connection) = try self.connect("slow") {
      $0.silenceTimeout = .milliseconds(200)
      $0.statementTimeout = .zero
      $0.stallTimeout = .milliseconds(300)
    }
    defer { withExtendedLifetime(server) {} }
    try connection.execute("SELECT 0")
    let began = ContinuousClock.now
    let error = postgresError { try connection.execute("SELECT 1") }
    #expect(error?.sqlState == "08006" && error?.disposition == .retry)
    // It has been silent since the statement, not since the last login.
    let since = try #require(error?.silentSince)
    #expect(since >= began && ContinuousClock.now - since >= .milliseconds(300))
  }

  @Test(
    "The client waits for a long statement of a server that answers others",
    .enabled(if: PostgresCluster.isAvailable))
  func busy() async throws {
    let database = try await TestDatabase()
    var configuration = PostgresConnectionConfiguration(
      url: database.cluster.url(database: database.name))
    // The second connection has this long to answer, on a busy machine too.
    configuration.silenceTimeout = .seconds(5)
    configuration.stallTimeout = .zero
    let connection = try PostgresConnection(configuration)
    try connection.execute("SELECT 1")
    #expect(try connection.query("SELECT 1 FROM pg_sleep(6)")[0, 0] == "1")
  }

  @Test("The client waits for a slow server as long as it accepts new connections")
  func slow() throws {
    let (server, connection) = try self.connect("slow") {
      // A second connection has this long to answer, on a busy machine too.
      $0.silenceTimeout = .milliseconds(200)
      $0.statementTimeout = .zero
    }
    defer { withExtendedLifetime(server) {} }
    try connection.execute("SELECT 0")
    // Each look at whether to give up follows a connection that was answered.
    var looks = 0
    connection.givesUp = {
      looks += 1
      return looks > 5
    }
    #expect(postgresError { try connection.execute("SELECT 1") }?.sqlState == "08006")
    #expect(looks > 5)
  }

  @Test(
    "A setting that the server refuses at the login is a mistake in the configuration",
    arguments: [
      ("22023", PostgresError.Disposition.configuration), ("42704", .configuration),
      ("42601", .configuration), ("55P02", .configuration), ("57P03", .retry), ("28P01", .refused),
      ("53300", .retry),
      // ALLOW_CONNECTIONS false; no memory for the process; a connection that ends at once.
      ("55000", .retry), ("53200", .retry), ("53400", .retry), ("55006", .retry),
      ("57P01", .retry), ("57P02", .retry), ("57014", .retry), ("08004", .retry),
      ("53100", .diskFull), ("3D000", .refused),
    ])
  func refusedSetting(sqlState: String, disposition: PostgresError.Disposition) throws {
    let error = postgresError { _ = try self.connect("refuse-\(sqlState)") }
    #expect(error?.sqlState == sqlState && error?.disposition == disposition)
    #expect(error?.message.contains("PGOPTIONS") == (disposition == .configuration))
  }
}
