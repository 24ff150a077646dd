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
    let role = "reader_of_\(sample.database)"
    _ = try sample.query("CREATE ROLE \(role) LOGIN")
    let url = sample.cluster.url(database: sample.database) + "?user=\(role)"
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
    let role = "writer_of_\(sample.database)"
    _ = try sample.query("CREATE ROLE \(role) LOGIN")
    let url = sample.cluster.url(database: sample.database) + "?user=\(role)"
    try TableCatalog(sample.configuration.postgresSinks[0].sink).prepare(
      over: PostgresConnection(sample.configuration.postgresSinks[0].sink.connection))
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
    let role = "frozen_of_\(sample.database)"
    _ = try sample.query("CREATE ROLE \(role) LOGIN; CREATE SCHEMA salesforce")
    _ = try sample.query("GRANT USAGE ON SCHEMA salesforce TO \(role)")
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = sample.cluster.url(database: sample.database) + "?user=\(role)"
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
    let failure = try #require(
      self.failure(sample, url: sample.cluster.url(database: sample.database)))
    #expect(failure.exitCode == .refused)
    #expect(failure.message.contains("is read-only"))
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
