import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Records that were read and cannot become rows.
@Suite("Refused records", .enabled(if: PostgresCluster.isAvailable)) struct RefusedReadTests {
  private static let stamp: Int64 = 1_771_300_000_000

  private static func run(
    _ database: TestDatabase, mode: PostgresSinkConfiguration.Mode, ordinal: Int64 = 0
  ) throws -> SinkRun {
    try SinkRun(database, ordinal: ordinal) {
      $0.mode = mode
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }
  }

  private static func reads(_ names: [String: TestCell]) -> RecordBatch {
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.epoch = 1
    batch.readAt = .now
    for (id, name) in names.sorted(by: { $0.key < $1.key }) {
      batch.addChange(
        "SNAPSHOT", id, ordinal: 1, kind: .snapshot, eventID: "snapshot:1:\(id):1",
        commitTimestamp: Self.stamp, [SinkRun.name: name])
    }
    return batch
  }

  private static func write(_ reads: RecordBatch, to run: SinkRun) throws {
    guard case .done = try run.sink.makeReady(for: reads.layout) else { return }
    try run.sink.write(reads, pass: nil)
  }

  @Test("Records that were not found keep the place of their commit while the next one fills")
  func unseenPlaces() async throws {
    let run = try Self.run(try await TestDatabase(), mode: .both).begin()
    run.sink.noteUnseen(["a"], of: "Opportunity", epoch: 1, ordinal: 5)
    try run.sink.seal(isLast: false)
    run.sink.noteUnseen(["b"], of: "Opportunity", epoch: 1, ordinal: 9)
    try run.commit()
    try run.commit()
    let places = try run.eye.column(
      """
      SELECT record_id || ' ' || ordinal FROM salesforce._etl_resync \
      WHERE kind = 'unseen' ORDER BY record_id
      """)
    #expect(places == ["a 5", "b 9"])
  }

  @Test(
    "A refused record is noted with its reason and requested again, and the others are stored",
    arguments: [PostgresSinkConfiguration.Mode.both, .current])
  func refused(mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, mode: mode).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity ADD CONSTRAINT polite CHECK (name NOT LIKE 'rude%')")
    try Self.write(
      Self.reads(["a": .text("kind"), "b": .text("rude one"), "c": .text("kind")]), to: run)
    run.sink.noteUnreadable(
      UnreadableRecord(recordID: "d", stamp: nil, reason: "Amount: no number"), of: "Opportunity")
    run.sink.noteUnreadable(
      UnreadableRecord(recordID: nil, stamp: 7, reason: "Id: no ID"), of: "Opportunity")
    try run.commit()
    #expect(
      try run.eye.column("SELECT id FROM salesforce.opportunity ORDER BY id") == [
        "a", "c", "first",
      ])
    let noted = try run.eye.rows(
      """
      SELECT record_id, extract(epoch FROM system_modstamp)::bigint, reason \
      FROM salesforce._etl_refused_read WHERE entity = 'Opportunity' ORDER BY 1
      """)
    #expect(noted.map { $0[0] } == ["b", "d"])
    #expect(noted.map { $0[1] } == ["1771300000", "-"])
    #expect(noted[0][2].contains("polite") && !noted[0][2].contains("rude one"))
    #expect(noted[1][2] == "Amount: no number")
    #expect(run.refused.isEmpty)
    #expect(run.notices.contains { $0.contains("cannot be stored") })
    // Once a day.
    func waiting() throws -> [String]? {
      try run.sink.recordsToRepair("Opportunity", after: "", limit: 9)
    }
    #expect(try waiting() == [])
    try run.eye.execute(
      "UPDATE salesforce._etl_resync SET noted_at = now() - interval '25 hours'")
    #expect(try waiting() == ["b", "d"])
    // Refused again: another day.
    try Self.write(Self.reads(["b": .text("rude again")]), to: run)
    try run.commit()
    #expect(try waiting() == ["d"])
    try run.eye.execute("ALTER TABLE salesforce.opportunity DROP CONSTRAINT polite")
    try Self.write(Self.reads(["b": .text("rude again")]), to: run)
    try run.commit()
    #expect(
      try run.eye.column(
        "SELECT record_id FROM salesforce._etl_resync WHERE done_at IS NULL ORDER BY 1") == ["d"])
  }
}
