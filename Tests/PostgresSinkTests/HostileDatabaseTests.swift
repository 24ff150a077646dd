import Clocks
import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Databases whose answers fit no statement: everything ends with an error or a result.
@Suite("Hostile databases") struct HostileDatabaseTests {
  private static let feeder = TableFeeder(
    pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])

  private static func configuration(_ server: PythonServer) -> PostgresSinkConfiguration {
    var configuration = PostgresSinkConfiguration(
      connection: PostgresConnectionConfiguration(
        url: "postgresql://postgres@127.0.0.1:\(server.port)/x"))
    configuration.retry = RetrySchedule(giveUpAfter: .zero)
    configuration.reads = PostgresSinkConfiguration.Reads()
    return configuration
  }

  private static let uses:
    [(name: String, use: @Sendable (PostgresSinkConfiguration) throws -> Void)] = [
      (
        "check",
        { configuration in
          _ = try DatabaseProbe(configuration).tables(Self.feeder)
        }
      ),
      (
        "status",
        { configuration in
          let table = try CheckpointTable(pipeline: "opps", sink: "warehouse", configuration)
          _ = try table.read()
          _ = try table.freshness()
          _ = try table.survey(feeder: Self.feeder)
          _ = try table.orgState()
        }
      ),
      (
        "plan",
        { configuration in
          _ = try TableCatalog.plan([SinkRun.layout()], configuration, feeder: Self.feeder)
        }
      ),
      (
        "run",
        { configuration in
          let sink = try PostgresSink(
            name: "warehouse", configuration: configuration, pipeline: "opps", org: "00D",
            topics: [SinkRun.topic],
            owner: LeaseOwner(place: "host /state", identity: "1", processID: 7), takesOver: false)
          try sink.noteFirstReads()
          try sink.open(creating: [:])
          let batch = RecordBatch(layout: SinkRun.layout())
          batch.epoch = 1
          batch.addChange("CREATE", "a", ordinal: 0, [SinkRun.name: .text("a")])
          try sink.take(batch)
          _ = try sink.sealAndPrepare([SinkRun.topic: ["epoch": 1, "next_ordinal": 1]])
          try sink.commitPatiently()
          sink.close()
        }
      ),
      (
        "verify",
        { configuration in
          let connection = try PostgresConnection(configuration.connection)
          let catalog = TableCatalog(configuration, feeder: Self.feeder)
          guard
            let table = try catalog.verifiedTable(for: SinkRun.layout(), over: connection)
          else { return }
          let verification = try TableVerification(
            table, layout: SinkRun.layout(), horizon: 0, over: connection)
          try verification.finishPass()
          _ = try verification.sample(5)
          _ = try verification.findings(idLimit: 5)
        }
      ),
      (
        "rebuild",
        { configuration in
          let connection = try PostgresConnection(configuration.connection)
          let catalog = TableCatalog(configuration, feeder: Self.feeder)
          _ = try catalog.restore(over: connection)
          for tables in try catalog.storedTables(over: connection) {
            let refold = Refold(history: tables.history, current: tables.current, delete: .mark)
            _ = try refold.refoldAlone(records: ["a"], over: connection)
          }
        }
      ),
    ]

  @Test(
    "No answer ends the program, and answers that leave everything out are errors",
    arguments: ["none", "narrow", "nulls", "junk"])
  func answers(_ kind: String) throws {
    let server = try PythonServer("hostile_postgres.py", [kind])
    defer { withExtendedLifetime(server) {} }
    for (name, use) in Self.uses {
      let error = postgresError { try use(Self.configuration(server)) }
      if kind == "none", ["check", "run"].contains(name) {
        #expect(error?.disposition == .resources, "\(name): \(error?.message ?? "no error")")
      }
    }
  }

  @Test(
    "A run gives up on a database that takes logins and stops answering statements",
    arguments: 1...4)
  func stalled(_ count: Int) throws {
    let server = try PythonServer("hostile_postgres.py", ["slow-\(count)"])
    defer { withExtendedLifetime(server) {} }
    var configuration = Self.configuration(server)
    configuration.connection.silenceTimeout = .milliseconds(10)
    configuration.retry = RetrySchedule(giveUpAfter: .seconds(1))
    let run = try #require(Self.uses.first { $0.name == "run" }).use
    let error = postgresError { try run(configuration) }
    #expect(error?.disposition == .retry, "\(String(describing: error))")
  }

  @Test("No sequence of random answers ends the program", arguments: 1...Self.seedCount)
  func random(seed: Int) throws {
    let server = try PythonServer("hostile_postgres.py", ["random", "\(seed)"])
    defer { withExtendedLifetime(server) {} }
    for _ in 1...20 {
      for (_, use) in Self.uses {
        do { try use(Self.configuration(server)) } catch { continue }
      }
    }
  }

  private static let seedCount = ExplorationSize.isFull ? 40 : 3
}
