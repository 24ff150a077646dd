import PostgresStore
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Check of a pipeline with a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseCheckTests {
  /// What is found wrong when the sinks of a sample have this URL.
  private func failure(_ sample: DatabaseSample, url: String) -> ConnectionCheck.Failure? {
    var sinks = sample.configuration.postgresSinks
    sinks[0].sink.connection.url = url
    do throws(ConnectionCheck.Failure) {
      _ = try ConnectionCheck.askDatabases(sinks)
      return nil
    } catch {
      return error
    }
  }

  @Test("A database that can be written to is told with its version, role and schema")
  func writable() async throws {
    let sample = try await DatabaseSample()
    let lines = try ConnectionCheck.askDatabases(sample.configuration.postgresSinks)
    #expect(lines.count == 1)
    #expect(lines[0].hasPrefix("sink warehouse: PostgreSQL 1"))
    #expect(lines[0].contains("database \(sample.database) as "))
    #expect(lines[0].hasSuffix("schema salesforce will be made"))
    #expect(try sample.query("SELECT to_regnamespace('salesforce')") == "")
  }

  @Test("A role that may not make tables is told what to have done; 77")
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

  @Test("A database that is not there is told in one line, with the sink's name; 69")
  func unreachable() async throws {
    let sample = try await DatabaseSample()
    let failure = try #require(self.failure(sample, url: "postgresql://127.0.0.1:1/none"))
    #expect(failure.exitCode == .unavailable)
    #expect(failure.message.hasPrefix("sink 'warehouse': postgres: cannot connect: "))
    #expect(failure.message.unicodeScalars.allSatisfy { $0.value >= 0x20 })
  }
}
