import Clocks
import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Whatever goes wrong on the way, a transaction is there once.
@Suite("Retries", .enabled(if: PostgresCluster.isAvailable)) struct SinkRetryTests {
  private func checkAll(_ run: SinkRun, _ names: [String], retries: Int = 1) throws {
    #expect(try run.history() == names)
    #expect(try run.current() == names)
    #expect(try run.storedOrdinal() == "\(names.count)")
    #expect(run.refused.isEmpty)
    #expect(run.notices.count { $0.contains("again in") } == retries, "\(run.notices)")
  }

  @Test(
    "Deadlock, serialization failure, lock timeout, shutdown and cancel are retried",
    arguments: ["40P01", "40001", "55P03", "57P01", "57014"])
  func raised(_ sqlState: String) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.disturbHistory(times: 2, "RAISE EXCEPTION 'x' USING ERRCODE = '\(sqlState)'")
    run.notices = []
    try run.write(["a", "b"])
    try run.commit()
    try self.checkAll(run, ["first", "a", "b"], retries: 2)
  }

  @Test("A commit waits for a table that another session has locked")
  func locked() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) { $0.connection.lockTimeout = .milliseconds(1) }.begin()
    let holder = try database.connect()
    try holder.execute("BEGIN; LOCK TABLE salesforce.opportunity_history")
    run.notices = []
    run.onNotice = { _ in try holder.execute("COMMIT") }
    try run.write(["a"])
    try run.commit()
    try self.checkAll(run, ["first", "a"])
    #expect(
      run.notices.contains { $0.contains("\"opportunity_history\" is locked by process ") },
      "\(run.notices)")
  }

  @Test("A server process that ends at any point of the commit is replaced")
  func terminated() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    run.notices = []
    try run.write(["a"])
    try run.terminateBackend()
    try run.commit()
    try self.checkAll(run, ["first", "a"])

    try run.disturbHistory("PERFORM pg_terminate_backend(pg_backend_pid())")
    try run.write(["b"])
    try run.commit()
    try self.checkAll(run, ["first", "a", "b"], retries: 2)

    // The first question after a lost COMMIT is asked over a new connection, without a retry.
    try run.write(["c"])
    try run.prepare()
    try run.terminateBackend()
    try run.sink.commitPatiently()
    try self.checkAll(run, ["first", "a", "b", "c"], retries: 2)

    try run.eye.execute(
      """
      CREATE CONSTRAINT TRIGGER late AFTER INSERT ON salesforce.opportunity_history
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.disturb();
      SELECT setval('public.disturbance', 1, false);
      ALTER TABLE salesforce.opportunity_history DISABLE TRIGGER disturb
      """)
    try run.write(["d"])
    try run.commit()
    try self.checkAll(run, ["first", "a", "b", "c", "d"], retries: 3)
  }

  @Test(
    "A connection cut within the rows, at COMMIT or before its answer loses and repeats nothing",
    arguments: [
      "copy", "request", "answer",
    ])
  func cut(_ kind: String) async throws {
    let database = try await TestDatabase()
    let proxy = try PythonServer("postgres_proxy.py", ["\(database.cluster.port)"])
    let url = "postgresql://postgres@127.0.0.1:\(proxy.port)/\(database.name)"
    let run = try SinkRun(database, url: url).begin()
    var expected = ["first"]
    for round in 1...3 {
      run.notices = []
      try run.write(["r\(round)", "s\(round)"])
      expected += ["r\(round)", "s\(round)"]
      if kind != "copy" { try run.prepare() }
      try PostgresConnection(PostgresConnectionConfiguration(url: url))
        .query("SELECT 'arm \(kind)'")
      if kind == "copy" { try run.prepare() }
      try run.sink.commitPatiently()
      try self.checkAll(run, expected, retries: kind == "copy" ? 1 : 0)
    }
  }

  @Test(
    "A server that is killed and restarted during retries loses and repeats nothing",
    arguments: [true, false])
  func restart(isPrepared: Bool) async throws {
    let cluster = try PostgresCluster()
    let database = try TestDatabase(cluster)
    let run = try SinkRun(database).begin()
    run.notices = []
    try run.write(["a", "b"])
    if isPrepared { try run.prepare() }
    try cluster.stopImmediately()
    var isDown = true
    run.onNotice = { _ in
      if isDown { try cluster.start() }
      isDown = false
    }
    if !isPrepared { try run.prepare() }
    try run.sink.commitPatiently()
    #expect(!isDown)
    let after = try SinkRun(database, ordinal: 3)
    #expect(try after.history() == ["first", "a", "b"])
    #expect(try after.storedOrdinal() == "3")
  }

  @Test("A server that lacks confirmed commits ends the run, and nothing is written")
  func rewound() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let before = try run.eye.column("SELECT topics FROM salesforce._etl_checkpoint")[0]
    try run.write(["a"])
    try run.commit()
    // As a standby that was made the primary before it had the last transaction.
    try run.eye.execute("DELETE FROM salesforce.opportunity_history WHERE _record_id = 'a'")
    try run.eye.query("UPDATE salesforce._etl_checkpoint SET topics = $1::jsonb", [before])
    try run.terminateBackend()
    try run.write(["b"])
    #expect(postgresError { try run.commit() }?.disposition == .rewound)
    #expect(try run.history() == ["first"])
  }

  @Test("The policy limits the wait for a server that never returns")
  func givesUp() async throws {
    let cluster = try PostgresCluster()
    let run = try SinkRun(try TestDatabase(cluster)) {
      $0.retry = RetrySchedule(giveUpAfter: .milliseconds(600))
    }.begin()
    run.notices = []
    try run.write(["a"])
    try cluster.stopImmediately()
    let error = postgresError { try run.commit() }
    #expect(error?.disposition == .retry)
    // After 50, 200 and 350 ms.
    #expect(run.notices.count == 3, "\(run.notices)")
    #expect(error?.message.contains("gave up after 4 failed attempts") == true)
  }

  @Test("An unavailable database delays the list of records to repair, not the run")
  func repairsLater() async throws {
    let cluster = try PostgresCluster()
    let run = try SinkRun(try TestDatabase(cluster)) {
      $0.reads = PostgresSinkConfiguration.Reads()
    }.begin()
    #expect(try run.sink.recordsToRepair("Opportunity", after: "", limit: 9) == [])
    #expect(run.sink.isIdle)
    try cluster.stopImmediately()
    #expect(try run.sink.recordsToRepair("Opportunity", after: "", limit: 9) == nil)
    #expect(!run.sink.isIdle)
    try cluster.start()
    try run.write(["a"])
    try run.commit()
    #expect(run.sink.isIdle)
    #expect(try run.sink.recordsToRepair("Opportunity", after: "", limit: 9) == [])
  }

  @Test("Refused rows of a repeated transaction are reported once")
  func refusedAndRetried() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id <> 'bad')")
    try run.write(["a", "bad", "b"])
    try run.prepare()
    #expect(run.refused.map(\.ordinal) == [2])
    try run.terminateBackend()
    try run.sink.commitPatiently()
    #expect(run.refused.count == 1)
    #expect(try run.history() == ["first", "a", "b"])
    #expect(try run.stale() == ["bad"])
    #expect(try run.noted() == ["bad"])

    // What is taken the second time was reported, and may be there besides; the other way
    // round the run ends, since nobody has told.
    try run.write(["c", "d"])
    try run.prepare()
    try run.eye.terminateOthers()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id <> 'd')")
    #expect(postgresError { try run.sink.commitPatiently() }?.disposition == .retry)
    #expect(try run.history() == ["first", "a", "b"])
  }

  @Test("Each commit renews the lease")
  func renews() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    #expect(!run.sink.isDue)
    try run.eye.execute(
      "UPDATE salesforce._etl_checkpoint SET lease_until = now() - interval '1 hour'")
    // Nothing was written: positions and lease alone.
    try run.commit()
    #expect(
      try run.eye.column("SELECT lease_until > now() FROM salesforce._etl_checkpoint") == ["t"])
  }
}
