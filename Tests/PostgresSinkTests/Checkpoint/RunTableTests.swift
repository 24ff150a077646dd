import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Table of runs in the database", .enabled(if: PostgresCluster.isAvailable))
struct RunTableTests {
  private func row(_ id: String, exitCode: Int32 = 0, beganAt: Int64 = 1_771_300_000_000) -> RunRow
  {
    RunRow(
      id: id, version: "1", command: "run", beganAt: beganAt, endedAt: beganAt + 1500,
      exitCode: exitCode, reason: exitCode == 0 ? "caught_up" : "o'clock\u{0}",
      message: exitCode == 0 ? nil : "it's \\ \"late\"", counts: ["events": 3, "retries": 2],
      lag: exitCode == 0 ? 1250 : nil)
  }

  /// The run of each row of history.
  private static let joined = """
    SELECT h._record_id || ' ' || r.run_id FROM salesforce.opportunity_history AS h
    JOIN salesforce._etl_run AS r
      ON (h._epoch, h._ordinal) >= ((r.topics -> h._topic ->> 'begin_epoch')::int,
        (r.topics -> h._topic ->> 'begin_ordinal')::bigint)
      AND (h._epoch, h._ordinal) < ((r.topics -> h._topic ->> 'end_epoch')::int,
        (r.topics -> h._topic ->> 'end_ordinal')::bigint)
    ORDER BY h._ordinal
    """

  @Test("Every run has a row, and every row of history is one run's")
  func joins() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    try first.write(["a"])
    try first.commit()
    #expect(first.sink.close(adding: self.row("run-1")) == nil)
    // An idle run.
    let second = try SinkRun(database, ordinal: 2)
    try second.sink.open()
    #expect(second.sink.close(adding: self.row("run-2", exitCode: 75)) == nil)
    let third = try SinkRun(database, ordinal: 2)
    try third.sink.open()
    try third.write(["b", "c"])
    try third.commit()
    #expect(third.sink.close(adding: self.row("run-3")) == nil)
    let eye = try database.connect()
    #expect(
      try eye.column(Self.joined) == ["first run-1", "a run-1", "b run-3", "c run-3"])
    #expect(
      try eye.column(
        """
        SELECT concat_ws('|', sink, command, exit_code, reason, message, events, rows, retries, lag,
          ended_at - began_at) FROM salesforce._etl_run ORDER BY run_id
        """) == [
          "warehouse|run|0|caught_up|3|0|2|00:00:01.25|00:00:01.5",
          "warehouse|run|75|o'clock\u{FFFD}|it's \\ \"late\"|3|0|2|00:00:01.5",
          "warehouse|run|0|caught_up|3|0|2|00:00:01.25|00:00:01.5",
        ])
    #expect(
      try eye.column(
        "SELECT obj_description('salesforce._etl_run'::regclass) LIKE 'What each run%'")
        == ["t"])
  }

  @Test("Rows that a run took again after a crash belong to the run that committed them")
  func crash() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    #expect(first.sink.close(adding: self.row("run-1")) == nil)
    // Killed before its commit.
    let killed = try SinkRun(database, ordinal: 1)
    try killed.sink.open()
    try killed.write(["lost"])
    let second = try SinkRun(database, ordinal: 1)
    try second.sink.open()
    try second.write(["again"])
    try second.commit()
    #expect(second.sink.close(adding: self.row("run-2")) == nil)
    #expect(try database.connect().column(Self.joined) == ["first run-1", "again run-2"])
  }

  @Test("Runs are kept for a year")
  func kept() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let eye = try database.connect()
    let now = try #require(
      Int64(eye.column("SELECT floor(extract(epoch FROM now()) * 1000)::bigint")[0]))
    for (id, days) in [("new", Int64(0)), ("young", 300), ("old", 400)] {
      let row = self.row(id, beganAt: now - days * 86_400_000)
      #expect(run.sink.close(adding: row) == nil)
    }
    // The old one is removed as it is added.
    #expect(
      try eye.column("SELECT run_id FROM salesforce._etl_run ORDER BY 1") == ["new", "young"])
  }

  @Test("A run that may not add its row has written its events, and says why")
  func refused() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    #expect(run.sink.close(adding: self.row("run-1")) == nil)
    let eye = try database.connect()
    try eye.execute("ALTER TABLE salesforce._etl_run DROP COLUMN reason")
    let second = try SinkRun(database, ordinal: 1)
    try second.sink.open()
    try second.write(["a"])
    try second.commit()
    let reason = try #require(second.sink.close(adding: self.row("run-2")))
    #expect(reason.contains("reason"))
    #expect(try second.storedOrdinal() == "2")
    // The lease has ended all the same.
    #expect(
      try eye.column("SELECT lease_until <= now() FROM salesforce._etl_checkpoint") == ["t"])
  }
}
