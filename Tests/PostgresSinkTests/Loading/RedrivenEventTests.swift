import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Events of dead letters, loaded long after those that followed them.
@Suite("Redriven events", .enabled(if: PostgresCluster.isAvailable)) struct RedrivenEventTests {
  /// The update of a record that was refused, between its creation and a later update.
  private func batch(
    _ type: String, _ record: String, ordinal: Int64, isRedriven: Bool,
    _ fields: [Int: TestCell]
  ) -> RecordBatch {
    let batch = RecordBatch(layout: SinkRun.layout())
    let changed = type == "UPDATE" ? fields.keys.sorted() : []
    batch.addChange(
      type, record, ordinal: ordinal, metadata: [MetadataSlot.changedFields: .slots(changed)],
      fields)
    batch.isRedriven = isRedriven
    return batch
  }

  private func redrive(_ run: SinkRun, _ batch: RecordBatch) throws {
    try run.sink.take(batch)
    try run.commit()
  }

  @Test("The history takes an event once, and the current row equals the fold of the history")
  func history() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.sink.take(
      self.batch("CREATE", "a", ordinal: 1, isRedriven: false, [SinkRun.name: .text("old")]))
    try run.sink.take(
      self.batch("UPDATE", "a", ordinal: 3, isRedriven: false, [SinkRun.parent: .text("new")]))
    for _ in 0..<4 { run.advance() }
    try run.commit()
    run.sink.close()
    let positions = try run.storedOrdinal()
    let late = self.batch(
      "UPDATE", "a", ordinal: 2, isRedriven: true,
      [SinkRun.name: .text("between"), SinkRun.parent: .text("between")])
    for _ in 0..<2 {
      let retry = try SinkRun(database, ordinal: run.ordinal)
      try retry.sink.open()
      try self.redrive(retry, late)
      retry.sink.close()
      let rows = try run.eye.column(
        "SELECT name || ' ' || parent || ' ' || _stale FROM salesforce.opportunity WHERE id = 'a'")
      #expect(rows == ["between new false"])
      #expect(
        try run.eye.column(
          "SELECT _ordinal FROM salesforce.opportunity_history WHERE _record_id = 'a' ORDER BY 1")
          == ["1", "2", "3"])
      #expect(try run.storedOrdinal() == positions)
    }
  }

  @Test("A dead letter that was noted without its record is settled once its event arrives")
  func undecoded() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let late = self.batch("UPDATE", "first", ordinal: 5, isRedriven: true, [:])
    let eventID = String(decoding: late.bytes(late.events[0].eventID), as: UTF8.self)
    try run.eye.execute(
      """
      INSERT INTO salesforce._etl_resync (entity, kind, event_id, replay_id) VALUES \
      ('Opportunity', 'dead_letter', '\(eventID)', '01'), \
      ('Opportunity', 'dead_letter', 'another', '02')
      """)
    try self.redrive(run, late)
    #expect(
      try run.eye.column("SELECT event_id FROM salesforce._etl_resync WHERE done_at IS NULL")
        == ["another"])
  }

  @Test("Without a history the records are marked, and their values stay")
  func withoutHistory() async throws {
    let run = try SinkRun(try await TestDatabase()) { $0.mode = .current }.begin()
    try run.write(["a", "b"])
    for _ in 0..<2 { run.advance() }
    try run.commit()
    // After the last event of its record, and before it.
    for (record, ordinal) in [("a", Int64(4)), ("first", -1)] {
      try self.redrive(
        run,
        self.batch(
          "UPDATE", record, ordinal: ordinal, isRedriven: true, [SinkRun.name: .text("late")]))
    }
    #expect(
      try run.eye.column("SELECT name || ' ' || _stale FROM salesforce.opportunity ORDER BY id")
        == ["a true", "b false", "first true"])
    #expect(try run.noted() == ["first", "a"])
  }

  @Test("An event that is refused again stays noted, and none of it is loaded")
  func refusedAgain() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id <> 'odd')")
    try self.redrive(
      run, self.batch("CREATE", "odd", ordinal: 7, isRedriven: true, [SinkRun.name: .text("x")]))
    #expect(run.refused.map(\.ordinal) == [7])
    #expect(try run.history() == ["first"])
    #expect(try run.noted() == ["odd"])
  }
}
