import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Reads whose `SystemModstamp` is older than that of their row: from a server that lags, from an org
/// that was restored, or after a stamp that was ahead of the org's clock.
@Suite("Reads with an older stamp", .enabled(if: PostgresCluster.isAvailable)) struct OlderReadTests
{
  private typealias Mode = PostgresSinkConfiguration.Mode

  /// A row that was read an hour ago with a stamp of `age` seconds before now.
  private static func run(
    _ database: TestDatabase, _ mode: PostgresSinkConfiguration.Mode, age: Int
  ) throws -> SinkRun {
    let run = try SinkRun(database) {
      $0.mode = mode
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    try Self.read("before", age: age, run)
    try run.eye.execute(
      """
      UPDATE salesforce.opportunity SET _updated_at = now() - interval '1 hour', \
      _read_at = now() - interval '1 hour', _stale = true WHERE id = 'a'
      """)
    if mode == .both {
      try run.eye.execute(
        """
        UPDATE salesforce.opportunity_history SET _loaded_at = now() - interval '1 hour', \
        _read_at = now() - interval '1 hour' WHERE _record_id = 'a'
        """)
    }
    return run
  }

  /// Reads the record with a name and a stamp of `age` seconds before now.
  private static func read(_ name: String, age: Int, _ run: SinkRun) throws {
    let now = try run.eye.column("SELECT (extract(epoch FROM now()) * 1000)::bigint::text")[0]
    let stamp = try #require(Int64(now)) / 1000 * 1000 - Int64(age) * 1000
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.readAt = .now
    batch.addChange(
      "SNAPSHOT", "a", ordinal: 1, kind: .snapshot, eventID: "snapshot:0:a:\(stamp)",
      commitTimestamp: stamp,
      [SinkRun.name: .text(name), SinkRun.parent: .null, SinkRun.amount: .null])
    if case .done = try run.sink.makeReady(for: batch.layout) {
      try run.sink.write(batch, pass: nil)
    }
    try run.commit()
  }

  private static func names(_ run: SinkRun) throws -> [[String?]] {
    try run.eye.rows("SELECT name, _stale FROM salesforce.opportunity WHERE id = 'a'")
  }

  @Test(
    "A read from long after a row's stamp replaces the row, although its own stamp is older",
    arguments: [PostgresSinkConfiguration.Mode.both, .current])
  func restored(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode, age: 3600)
    try Self.read("restored", age: 7200, run)
    #expect(try Self.names(run) == [["restored", "f"]])
  }

  @Test(
    "A read that a repair asked for replaces a row from the future, and an unasked one does not",
    arguments: [PostgresSinkConfiguration.Mode.both, .current])
  func asked(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode, age: -1500)
    try Self.read("unasked", age: 300, run)
    #expect(try Self.names(run) == [["before", "t"]])
    try run.eye.execute(
      """
      INSERT INTO salesforce._etl_resync (entity, kind, record_id, event_id) \
      VALUES ('Opportunity', 'missing', 'a', 'verify')
      """)
    try Self.read("asked", age: 200, run)
    #expect(try Self.names(run) == [["asked", "f"]])
    // What comes later is compared with it, not with the read from the future.
    try run.eye.execute(
      "UPDATE salesforce.opportunity SET _updated_at = now() - interval '1 hour' WHERE id = 'a'")
    try Self.read("later", age: 100, run)
    #expect(try Self.names(run) == [["later", "f"]])
    #expect(
      try run.eye.column(
        "SELECT count(*)::text FROM salesforce._etl_resync WHERE done_at IS NULL") == ["0"])
  }
}
