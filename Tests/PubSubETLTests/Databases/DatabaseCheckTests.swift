import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Check of a pipeline with a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseCheckTests {
  /// What is found wrong when the sinks of a sample have this URL.
  private func failure(_ sample: DatabaseSample, url: String) -> ConnectionCheck.Failure? {
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = url
    configuration.sinks = [settings]
    do throws(ConnectionCheck.Failure) {
      _ = try ConnectionCheck.askSinks(configuration)
      return nil
    } catch {
      return error
    }
  }

  /// A new role without privileges, and the URL with which it logs in to the sample's database.
  private func role(
    named name: String, in sample: DatabaseSample
  ) throws -> (role: String, url: String) {
    let role = "\(name)_of_\(sample.database)"
    _ = try sample.query("CREATE ROLE \(role) LOGIN")
    return (role, sample.cluster.url(database: sample.database) + "?user=\(role)")
  }

  private func prepareTables(of sample: DatabaseSample) throws {
    let sink = sample.configuration.postgresSinks[0].sink
    try TableCatalog(sink).prepare(over: PostgresConnection(sink.connection))
  }

  @Test("A writable database is shown with its version, role and schema")
  func writable() async throws {
    let sample = try await DatabaseSample()
    let lines = try ConnectionCheck.askSinks(sample.configuration)
    #expect(lines.count == 1)
    #expect(lines[0].hasPrefix("sink warehouse: PostgreSQL 1"))
    #expect(lines[0].contains("database \(sample.database) as "))
    #expect(lines[0].hasSuffix("schema salesforce will be created"))
    #expect(try sample.query("SELECT to_regnamespace('salesforce')") == "")
  }

  @Test("A role that may not create tables gets exit code 77 and the remedy")
  func notAllowed() async throws {
    let sample = try await DatabaseSample()
    let (role, url) = try self.role(named: "reader", in: sample)
    let withoutSchema = try #require(self.failure(sample, url: url))
    #expect(withoutSchema.exitCode == .refused)
    #expect(
      withoutSchema.message.contains("CREATE SCHEMA \"salesforce\" AUTHORIZATION \"\(role)\""))
    _ = try sample.query("CREATE SCHEMA salesforce")
    let withSchema = try #require(self.failure(sample, url: url))
    #expect(
      withSchema.message.contains("GRANT USAGE, CREATE ON SCHEMA \"salesforce\" TO \"\(role)\""))
  }

  @Test("A role does not need CREATE if its tables exist with the required privileges")
  func grantedTables() async throws {
    let sample = try await DatabaseSample()
    let (role, url) = try self.role(named: "writer", in: sample)
    try self.prepareTables(of: sample)
    let refused = try #require(self.failure(sample, url: url))
    #expect(refused.exitCode == .refused)
    #expect(refused.message.contains("GRANT USAGE ON SCHEMA \"salesforce\" TO \"\(role)\""))
    // What it says has to be executed is what is missing.
    let statements = try #require(refused.message.firstRange(of: "ask the owner to run "))
    _ = try sample.query(String(refused.message[statements.upperBound...]))
    #expect(self.failure(sample, url: url) == nil)
    _ = try sample.query("REVOKE INSERT ON salesforce._etl_journal FROM \(role)")
    #expect(self.failure(sample, url: url)?.message.contains("\"_etl_journal\" TO") == true)
  }

  @Test("With contract freeze, a run still has to create its own tables once")
  func freezeWithoutTables() async throws {
    let sample = try await DatabaseSample()
    let (role, url) = try self.role(named: "frozen", in: sample)
    _ = try sample.query("CREATE SCHEMA salesforce; GRANT USAGE ON SCHEMA salesforce TO \(role)")
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = url
    settings.sink.contract = .freeze
    configuration.sinks = [settings]
    let failure = #expect(throws: ConnectionCheck.Failure.self) {
      try ConnectionCheck.askSinks(configuration)
    }
    #expect(failure?.message.contains("is not allowed to create tables") == true)
  }

  @Test("A read-only database is refused as in a run")
  func readOnly() async throws {
    let sample = try await DatabaseSample()
    _ = try sample.query(
      "ALTER DATABASE \"\(sample.database)\" SET default_transaction_read_only = on")
    let url = sample.cluster.url(database: sample.database)
    let failure = try #require(self.failure(sample, url: url))
    #expect(failure.exitCode == .configuration)
    let statement = "ALTER DATABASE \"\(sample.database)\" RESET default_transaction_read_only"
    #expect(failure.message.contains("run \(statement)"), "\(failure.message)")
    try sample.cluster.query(statement, database: "postgres")
    #expect(self.failure(sample, url: url) == nil)
    let session = url + "?options=-c%20default_transaction_read_only%3Don"
    #expect(self.failure(sample, url: session)?.message.contains("options in url") == true)
  }

  @Test("A database that is not in UTF8 is refused before the first row, and named after that")
  func encoding() async throws {
    let sample = try await DatabaseSample()
    let name = "latin_\(sample.database)"
    _ = try sample.query(
      "CREATE DATABASE \(name) ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    let url = sample.cluster.url(database: name)
    let failure = try #require(self.failure(sample, url: url))
    #expect(failure.exitCode == .configuration)
    #expect(failure.message.contains("LATIN1") && failure.message.contains("ENCODING 'UTF8'"))
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = url
    configuration.sinks = [settings]
    try TableCatalog(settings.sink).prepare(over: PostgresConnection(settings.sink.connection))
    let lines = try ConnectionCheck.askSinks(configuration)
    #expect(lines.contains { $0.contains("LATIN1") && $0.contains("dead letters") }, "\(lines)")
  }

  @Test("A dump that was restored without its owners is explained, with statements that work")
  func restored() async throws {
    let sample = try await DatabaseSample()
    let (role, url) = try self.role(named: "restored", in: sample)
    try self.prepareTables(of: sample)
    let refused = try #require(self.failure(sample, url: url))
    #expect(refused.exitCode == .refused)
    let start = try #require(refused.message.firstRange(of: "their owner, "))
    let end = try #require(refused.message.firstRange(of: ". Or, to let it write"))
    let statements = String(refused.message[start.upperBound..<end.lowerBound])
    #expect(statements.contains("ALTER SCHEMA \"salesforce\" OWNER TO \"\(role)\""))
    #expect(statements.contains("_etl_checkpoint"))
    _ = try sample.query(statements)
    #expect(self.failure(sample, url: url) == nil)
  }

  @Test(
    "A database that says nothing, before or after the login or any statement, is not available",
    arguments: ["deaf", "mute", "mute-2", "slow", "slow-2"])
  func silent(_ kind: String) async throws {
    let server = try PythonServer("hostile_postgres.py", [kind])
    let sample = try await DatabaseSample()
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = "postgresql://x@127.0.0.1:\(server.port)/x?connect_timeout=2"
    settings.sink.connection.silenceTimeout = .milliseconds(10)
    configuration.sinks = [settings]
    let failure = #expect(throws: ConnectionCheck.Failure.self) {
      try ConnectionCheck.askSinks(configuration)
    }
    // The second answer says that the role may do nothing.
    if !kind.hasSuffix("-2") {
      #expect(failure?.exitCode == .unavailable, "\(failure?.message ?? "")")
    }
    let status = try PipelineStatus.read(configuration, maxAge: nil)
    #expect(status.problems.contains { $0.kind == "database_unavailable" })
    #expect(throws: PostgresError.self) {
      try settings.plan([], through: StageChain([]), configuration)
    }
  }

  @Test("An unreachable database gets exit code 69 and one line with the sink's name")
  func unreachable() async throws {
    let sample = try await DatabaseSample()
    let failure = try #require(self.failure(sample, url: "postgresql://127.0.0.1:1/none"))
    #expect(failure.exitCode == .unavailable)
    #expect(failure.message.hasPrefix("sink 'warehouse': postgres: cannot connect: "))
    #expect(failure.message.unicodeScalars.allSatisfy { $0.value >= 0x20 })
  }
}
