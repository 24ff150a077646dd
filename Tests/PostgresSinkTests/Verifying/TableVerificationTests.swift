import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// A current table compared with records that were read.
@Suite("Verification of tables", .enabled(if: PostgresCluster.isAvailable))
struct TableVerificationTests {
  /// Milliseconds since 1970: of the rows' last events and the records' stamps, and of what is too young.
  private static let (old, horizon, young): (Int64, Int64, Int64) = (
    1_771_300_000_000, 1_771_300_100_000, 1_771_300_200_000
  )

  /// One object: an encoder takes batches of its own layout alone.
  private static let layout = SinkRun.layout()

  /// A table with a row for each name, whose Name is the name, after statements on it.
  private static func run(
    _ database: TestDatabase, _ names: [String], _ statements: String = ""
  ) throws -> SinkRun {
    let run = try SinkRun(database) {
      $0.mode = .both
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    try run.write(names)
    try run.commit()
    try run.eye.execute(
      """
      UPDATE salesforce.opportunity SET _commit_timestamp = to_timestamp(1771300000); \(statements)
      """)
    return run
  }

  private static func verification(
    _ run: SinkRun, _ database: TestDatabase, layout: RecordLayout = Self.layout
  ) throws -> TableVerification {
    let catalog = TableCatalog(
      database.configuration {
        $0.mode = .both
        $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
      })
    let table = try #require(try catalog.verifiedTable(for: layout, over: run.eye))
    return try TableVerification(table, layout: layout, horizon: Self.horizon, over: run.eye)
  }

  private struct Record {
    var id: String
    var name: TestCell
    var amount: TestCell = .null
    var stamp = TableVerificationTests.old
    var isDeleted = false
  }

  private static func batch(_ records: [Record]) -> RecordBatch {
    let batch = RecordBatch(layout: Self.layout)
    batch.epoch = 1
    batch.readAt = .now
    for record in records {
      batch.addChange(
        record.isDeleted ? "SNAPSHOT_DELETE" : "SNAPSHOT", record.id, ordinal: 1, kind: .snapshot,
        eventID: "snapshot:1:\(record.id):1", commitTimestamp: record.stamp,
        [SinkRun.name: record.name, SinkRun.parent: .null, SinkRun.amount: record.amount])
    }
    return batch
  }

  @Test("Recent rows, marked rows and equal values in another form do not count as drift")
  func judgement() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(
      database,
      [
        "equal", "lines", "differing", "stale", "stale_field", "unmarked_field", "partial",
        "partial_read",
        "young_row", "young_record", "waiting", "deleted", "extra", "stale_extra",
      ],
      """
      UPDATE salesforce.opportunity SET name = E'a\\r\\nb' WHERE id = 'lines'; \
      UPDATE salesforce.opportunity SET _stale = true WHERE id IN ('stale', 'stale_extra'); \
      UPDATE salesforce.opportunity SET _stale_fields = '{name}' \
      WHERE id IN ('stale_field', 'unmarked_field'); \
      UPDATE salesforce.opportunity SET _partial = true WHERE id IN ('partial', 'partial_read'); \
      UPDATE salesforce.opportunity SET _read_at = now() WHERE id = 'partial_read'; \
      UPDATE salesforce.opportunity SET _commit_timestamp = to_timestamp(1771300200) \
      WHERE id = 'young_row'; \
      UPDATE salesforce.opportunity SET _deleted_at = now() WHERE id = 'deleted'; \
      INSERT INTO salesforce._etl_resync (entity, kind, record_id, event_id) \
      VALUES ('Opportunity', 'gap', 'waiting', 'e'); \
      DELETE FROM salesforce.opportunity WHERE id = 'first'
      """)
    let verification = try Self.verification(run, database)
    try verification.take(
      Self.batch([
        Record(id: "equal", name: .text("equal")), Record(id: "lines", name: .text("a\nb")),
        Record(id: "differing", name: .text("other")), Record(id: "stale", name: .text("other")),
        Record(id: "stale_field", name: .text("other")),
        Record(id: "unmarked_field", name: .text("other"), amount: .double(5)),
        Record(id: "partial", name: .text("partial"), amount: .double(5)),
        Record(id: "partial_read", name: .text("partial_read"), amount: .double(5)),
        Record(id: "young_row", name: .text("other")),
        Record(id: "young_record", name: .text("other"), stamp: Self.young),
        Record(id: "waiting", name: .text("other")), Record(id: "deleted", name: .text("deleted")),
        Record(id: "missing", name: .text("missing")),
      ]))
    try verification.finishPass()
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.equal == 2)
    #expect(findings.tooYoung == 2)
    // Stale, its own stale field, partial, waiting, and the stale row of no record.
    #expect(findings.marked == 5)
    #expect(findings.outdated == 2 && findings.total == 15 && findings.uncounted == 0)
    #expect(findings.records["missing"] == ["deleted", "missing"])
    #expect(findings.records["extra"] == ["extra"])
    #expect(findings.records["differing"] == ["differing", "partial_read", "unmarked_field"])
    #expect(findings.fields.map(\.field) == ["Name", "Amount"])
    #expect(findings.fields.map(\.records) == [["differing"], ["partial_read", "unmarked_field"]])
    #expect(findings.notComparable.isEmpty && findings.verdict == .drift)
  }

  private static func omitted(
    _ kind: OmittedRecord.Kind, _ id: String?, stamp: Int64? = old
  ) -> OmittedRecord {
    OmittedRecord(kind, recordID: id, stamp: stamp, reason: "stage cast: \(kind.rawValue)")
  }

  @Test("Every record ends in one class, and a record that comes twice counts once")
  func classes() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(
      database, ["equal", "outside", "refused", "unreadable", "young"],
      "DELETE FROM salesforce.opportunity WHERE id = 'first'")
    let verification = try Self.verification(run, database)
    let equal = Record(id: "equal", name: .text("equal"))
    try verification.take(
      Self.batch([equal, equal]),
      omitted: [
        Self.omitted(.leftOut, "outside"), Self.omitted(.leftOut, "left_out"),
        Self.omitted(.refused, "refused"), Self.omitted(.refused, "refused_missing"),
        Self.omitted(.unreadable, "unreadable"), Self.omitted(.unreadable, nil),
        Self.omitted(.refused, "young", stamp: Self.young),
      ])
    try verification.finishPass()
    #expect(try verification.candidates(inRound: 1, after: "", limit: 9) == ["outside"])
    try verification.takeAgain(
      Self.batch([]), asked: ["outside"], missing: [], omitted: [Self.omitted(.leftOut, "outside")],
      round: 1)
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.equal == 1 && findings.outside == 1 && findings.leftOut == 1)
    #expect(findings.refused == 2 && findings.unreadable == 2 && findings.tooYoung == 1)
    #expect(findings.lacking == 2 && findings.verdict == .drift)
    #expect(findings.total == 8 && findings.uncounted == 0 && findings.received == 9)
    #expect(findings.records == ["outside": ["outside"]])
    #expect(findings.omissions.all.map(\.count) == [3, 2])
    // No read removes the row.
    try verification.noteForRepair()
    #expect(try run.stale() == [])
  }

  @Test("A change that the copy lacks shows in SystemModstamp, and equal values settle it")
  func stamps() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(
      database, ["late", "touched", "same"],
      """
      UPDATE salesforce.opportunity SET _commit_timestamp = to_timestamp(1771200000); \
      DELETE FROM salesforce.opportunity WHERE id = 'first'
      """)
    let catalog = TableCatalog(
      database.configuration {
        $0.mode = .both
        $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
      })
    let table = try #require(try catalog.verifiedTable(for: Self.layout, over: run.eye))
    let verification = try TableVerification(
      table, layout: Self.layout, horizon: Self.horizon, comparesStamps: true, over: run.eye)
    let listing = RecordBatch(layout: Self.layout)
    listing.epoch = 1
    listing.readAt = .now
    for (id, stamp) in [("late", Self.old), ("touched", Self.old), ("same", 1_771_200_004_000)] {
      listing.addChange(
        "SNAPSHOT", id, ordinal: 1, kind: .snapshot, eventID: "snapshot:1:\(id):1",
        commitTimestamp: stamp, [:])
    }
    try verification.take(listing)
    try verification.finishPass()
    #expect(try verification.candidates(inRound: 1, after: "", limit: 9) == ["late", "touched"])
    try verification.takeAgain(
      Self.batch([
        Record(id: "late", name: .text("other")), Record(id: "touched", name: .text("touched")),
      ]), asked: ["late", "touched"], missing: [], round: 1)
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.records == ["differing": ["late"]])
    #expect(findings.equal == 2 && findings.uncounted == 0)
  }

  @Test("A difference that a repair has not corrected is still drift")
  func afterRepair() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(
      database, ["a", "b"],
      """
      DELETE FROM salesforce.opportunity WHERE id = 'first'; \
      UPDATE salesforce.opportunity SET _system_modstamp = now() + interval '1 day' WHERE id = 'a'
      """)
    for _ in 0..<2 {
      let verification = try Self.verification(run, database)
      try verification.take(
        Self.batch([Record(id: "a", name: .text("other")), Record(id: "b", name: .text("b"))]))
      try verification.finishPass()
      let findings = try verification.findings(idLimit: 9)
      #expect(findings.records == ["differing": ["a"]])
      #expect(findings.verdict == .drift && findings.uncounted == 0)
      try verification.noteForRepair()
      #expect(try run.stale() == ["a"])
    }
  }

  @Test("Only a difference in every reading is drift, and it is noted for repair")
  func candidates() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(
      database, ["a", "b", "c", "d", "e"],
      "DELETE FROM salesforce.opportunity WHERE id = 'first'")
    let verification = try Self.verification(run, database)
    try verification.take(
      Self.batch([
        Record(id: "a", name: .text("other")), Record(id: "b", name: .text("other")),
        Record(id: "gone", name: .text("gone")), Record(id: "unreadable", name: .text("x")),
      ]))
    try verification.finishPass()
    func candidates(_ round: Int, _ id: String = "", _ limit: Int = 9) throws -> [String] {
      try verification.candidates(inRound: round, after: id, limit: limit)
    }
    let all = ["a", "b", "c", "d", "e", "gone", "unreadable"]
    #expect(try candidates(1) == all)
    #expect(try candidates(1, "b", 2) == ["c", "d"])
    try verification.takeAgain(
      Self.batch([
        Record(id: "a", name: .text("a")), Record(id: "b", name: .text("other")),
        Record(id: "c", name: .null, isDeleted: true),
        Record(id: "d", name: .null, stamp: Self.young, isDeleted: true),
      ]), asked: all, missing: ["e", "gone"], round: 1)
    #expect(try candidates(1) == [])
    #expect(try candidates(2) == ["b", "c", "e"])
    try verification.takeAgain(
      Self.batch([
        Record(id: "b", name: .text("b")), Record(id: "c", name: .null, isDeleted: true),
      ]), asked: ["b", "c", "e"], missing: ["e"], round: 2)
    #expect(try candidates(3) == ["c", "e"])
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.records == ["extra": ["c"], "not_found": ["e"]])
    #expect(findings.equal == 2 && findings.tooYoung == 1 && findings.unreadable == 1)
    try verification.noteForRepair()
    #expect(try run.sink.recordsToRepair("Opportunity", after: "", limit: 9) == ["c", "e"])
    #expect(try run.stale() == ["c", "e"])
  }

  @Test("Records that are read again are counted once")
  func startOver() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, ["a"])
    let verification = try Self.verification(run, database)
    let records = [
      Record(id: "a", name: .text("other")), Record(id: "first", name: .text("first")),
    ]
    try verification.take(Self.batch(records))
    try verification.startOver()
    try verification.take(Self.batch(records))
    try verification.finishPass()
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.compared == 2 && findings.equal == 1 && findings.differing == 1)
    #expect(Set(try verification.sample(9)) == ["first"])
  }

  @Test("Columns without a field, fields without a column and hidden rows are named")
  func columns() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database, [])
    let layout = SinkRun.layout(schemaID: "schema-2", [Column("Stage", 3, .string)])
    let more = try Self.verification(run, database, layout: layout)
    #expect(more.table.leftOut.map(\.field) == ["Stage"])
    let fewer = Self.layout.with(
      columns: Self.layout.columns.filter { $0.name != "Parent" })
    let table = try Self.verification(run, database, layout: fewer).table
    #expect(table.leftOut.map(\.field) == ["Parent"])
    try run.eye.execute(
      """
      ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY; \
      ALTER TABLE salesforce.opportunity FORCE ROW LEVEL SECURITY; \
      CREATE ROLE looker; GRANT USAGE ON SCHEMA salesforce TO looker; \
      GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO looker; SET ROLE looker
      """)
    #expect {
      try Self.verification(run, database)
    } throws: {
      ($0 as? PostgresError)?.message.contains("row-level security") == true
    }
  }
}
