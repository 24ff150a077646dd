import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Conditions of a database that somebody has to change.
@Suite("Conditions of a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseConditionTests {
  @Test("A database that is set to read-only ends a run at once, with the statement to run")
  func readOnly() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.notices = []
    try run.eye.execute(
      "ALTER DATABASE \"\(database.name)\" SET default_transaction_read_only = on")
    try run.terminateBackend()
    let error = postgresError {
      try run.write(["a"])
      try run.commit()
    }
    #expect(error?.disposition == .configuration, "\(error?.message ?? "") \(run.notices)")
    let statement = "ALTER DATABASE \"\(database.name)\" RESET default_transaction_read_only"
    #expect(error?.message.contains("run \(statement)") == true)
    #expect(run.notices.count <= 1, "the lost connection alone is retried: \(run.notices)")
    try run.eye.execute(statement)
    #expect(try run.history() == ["first"])
  }

  @Test("A new database that is not in UTF8 is refused, and an existing one is used with a warning")
  func encoding() async throws {
    let cluster = try await PostgresCluster.shared
    let name = "eucjp_\(UInt64.random(in: 0 ... .max))"
    try TestDatabase(cluster).connect().execute(
      "CREATE DATABASE \(name) ENCODING 'EUC_JP' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    let database = try await TestDatabase()
    let run = try SinkRun(database, url: cluster.url(database: name))
    let error = postgresError { try run.sink.open() }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("EUC_JP") == true, "\(error?.message ?? "")")
    try run.sink.open(creating: [:])
    let next = try SinkRun(database, url: cluster.url(database: name))
    try next.sink.open()
    #expect(next.notices.contains { $0.contains("EUC_JP") }, "\(next.notices)")
  }

  @Test(
    "A sequence that has given out its last number ends a run, with its name and the statement",
    arguments: [
      "ALTER SEQUENCE salesforce._etl_journal_id_seq MAXVALUE 99; "
        + "SELECT setval('salesforce._etl_journal_id_seq', 99)",
      "SELECT setval('salesforce._etl_journal_id_seq', 9223372036854775807)",
      "ALTER TABLE salesforce.opportunity_history ADD COLUMN n smallserial; "
        + "SELECT setval('salesforce.opportunity_history_n_seq', 32767)",
      "CREATE SEQUENCE public.own MAXVALUE 7; SELECT setval('public.own', 7); "
        + "CREATE FUNCTION public.count() RETURNS trigger LANGUAGE plpgsql AS "
        + "$$ BEGIN PERFORM nextval('public.own'); RETURN NEW; END $$; "
        + "CREATE TRIGGER count BEFORE INSERT ON salesforce.opportunity_history "
        + "FOR EACH ROW EXECUTE FUNCTION public.count()",
    ])
  func exhaustedSequence(_ change: String) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.eye.execute(change)
    // A new column, which is noted in the journal.
    let layout = SinkRun.layout(schemaID: "schema-2", [Column("Note", 3, .string)])
    func proceed() throws {
      try run.write(["a"], layout: layout)
      try run.commit()
    }
    let error = try #require(postgresError { try proceed() })
    #expect(error.disposition == .configuration, "\(error.message)")
    #expect(error.message.contains("_seq") || error.message.contains("public.own"))
    let start = try #require(error.message.firstRange(of: "ask its owner to run ")).upperBound
    try run.eye.execute(String(error.message[start...]))
    let next = try SinkRun(database, ordinal: 1)
    try next.sink.open()
    try next.write(["a"], layout: layout)
    try next.commit()
    #expect(try next.history() == ["first", "a"])
    #expect(try next.noted() == [])
  }

  @Test("A role that owns none of the tables gets the statements that make it their owner")
  func restored() async throws {
    let database = try await TestDatabase()
    let owner = try SinkRun(database).begin()
    owner.sink.close()
    let role = "restored_\(database.name)"
    try owner.eye.execute("CREATE ROLE \(role) LOGIN")
    let url = "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"
    let run = try SinkRun(database, ordinal: 1, url: url)
    let error = try #require(postgresError { try run.sink.open() })
    #expect(error.disposition == .refused)
    let start = try #require(error.message.firstRange(of: "their owner, "))
    let end = try #require(error.message.firstRange(of: ". Or, to let it write"))
    let statements = String(error.message[start.upperBound..<end.lowerBound])
    for name in ["opportunity", "opportunity_history", "opportunity_live", "_freshness"] {
      #expect(statements.contains(name), "\(statements)")
    }
    try owner.eye.execute(statements)
    try run.sink.open()
    try run.write(["a"])
    try run.commit()
    #expect(try run.history() == ["first", "a"])
  }
}
