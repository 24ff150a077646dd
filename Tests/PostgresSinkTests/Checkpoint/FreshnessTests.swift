import Bytes
import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Freshness of a sink's tables", .enabled(if: PostgresCluster.isAvailable))
struct FreshnessTests {
  private func freshness(_ database: TestDatabase) throws -> [TableFreshness] {
    try CheckpointTable(pipeline: "opps", sink: "warehouse", database.configuration()).freshness()
  }

  @Test("Each table is as fresh as its topic's newest change, and a future change does not count")
  func ofTopic() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let batch = RecordBatch(layout: SinkRun.layout())
    for time in [1_771_300_999_000, Int64.max, .min, 253_402_300_799_999] {
      batch.addChange("UPDATE", "r", ordinal: run.ordinal, commitTimestamp: time)
      run.advance()
    }
    try run.sink.take(batch)
    try run.commit()
    #expect(
      try self.freshness(database).map(\.lastChange) == [1_771_300_999_000, 1_771_300_999_000])
    // No change since: the table goes on being complete.
    run.completeThrough = 1_771_400_000_000
    try run.commit()
    for table in try self.freshness(database) {
      #expect(table.completeThrough == 1_771_400_000_000)
      #expect(table.lastChange == 1_771_300_999_000)
      #expect(table.topics == [SinkRun.topic])
    }
    #expect(
      try run.eye.column(
        "SELECT extract(epoch FROM complete_through)::bigint FROM salesforce._etl_checkpoint")
        == ["1771400000"])
    run.sink.close()
    // The next run, which sees no event, knows it still.
    let next = try SinkRun(database, ordinal: run.ordinal)
    try next.sink.open()
    next.completeThrough = nil
    try next.commit()
    for table in try self.freshness(database) {
      #expect(table.completeThrough == nil)
      #expect(table.lastChange == 1_771_300_999_000)
    }
    #expect(
      try next.eye.rows("SELECT complete_through FROM salesforce._etl_checkpoint") == [["-"]])
  }

  @Test(
    "The server takes a query of the view for cheap, so that it does not compile it",
    arguments: [false, true])
  func cheap(follows: Bool) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) { $0.reads = .init() }.begin()
    try run.commit()
    if follows { try run.sink.renewLease() } else { run.sink.close() }
    let plan = try run.eye.column("EXPLAIN SELECT * FROM salesforce._freshness")[0]
    let cost = try #require(plan.firstMatch(of: /cost=[\d.]+\.\.([\d.]+)/)?.output.1)
    // jit_above_cost
    #expect(try #require(Double(cost)) < 100_000, "\(plan)")
  }

  @Test("A copy in progress is shown, and nothing is complete before it ends")
  func copying() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = 1_771_400_000_000
    try run.commit()
    run.sink.close()
    #expect(try self.freshness(database).map(\.reading) == [nil, nil])
    try run.sink.open()
    try run.sink.awaitReads(of: "Opportunity")
    run.sink.close()
    #expect(try self.freshness(database).map(\.completeThrough) == [nil, nil])
    #expect(try self.freshness(database).map { $0.reading?.rows } == [0, 0])
    let states: [(state: String, rows: Int, total: String, finished: String)] = [
      ("begun", 0, "NULL", "NULL"), ("reading", 7, "12", "NULL"),
      ("complete", 12, "12", "to_timestamp(9)"), ("reading", 1, "NULL", "to_timestamp(9)"),
    ]
    var found: [TableFreshness] = []
    for state in states {
      try run.eye.execute(
        """
        INSERT INTO salesforce._etl_snapshot (pipeline, sink, entity, number, state, begun_at, \
        page_row, rows, total, finished_at) VALUES ('opps', 'warehouse', 'Opportunity', 1, \
        '\(state.state)', now(), 0, \(state.rows), \(state.total), \(state.finished)) \
        ON CONFLICT (pipeline, sink, entity) DO UPDATE SET state = excluded.state, \
        rows = excluded.rows, total = excluded.total, finished_at = excluded.finished_at
        """)
      found.append(try #require(try self.freshness(database).first))
    }
    #expect(found.map { $0.reading?.rows } == [0, 7, nil, 1])
    #expect(found.map { $0.reading?.total } == [nil, 12, nil, nil])
    #expect(found.map(\.completeThrough) == [nil, nil, 1_771_400_000_000, 1_771_400_000_000])
    #expect(found.map(\.snapshotAt) == [nil, nil, 9000, 9000])
  }

  @Test("One word says how current a table is, by the same rules as for files")
  func state() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = UTCTime.now()
    try run.commit()
    run.sink.close()
    try run.eye.execute("UPDATE salesforce.opportunity SET _stale = false, _partial = false")
    let snapshot =
      "INSERT INTO salesforce._etl_snapshot (pipeline, sink, entity, number, state, "
      + "begun_at, page_row, rows) VALUES ('opps', 'warehouse', 'Opportunity', 1, 'begun', now(), 0, 0)"
    let noted = "INSERT INTO salesforce._etl_resync (entity, kind, record_id, event_id) VALUES"
    let settled = "UPDATE salesforce._etl_resync SET done_at = now()"
    let column = "UPDATE salesforce._etl_column SET state = "
    let steps: [(statement: String, state: String)] = [
      ("SELECT 1", "fresh"),
      (snapshot, "copying"),
      ("UPDATE salesforce._etl_snapshot SET state = 'reading'", "copying"),
      ("UPDATE salesforce._etl_snapshot SET state = 'complete', finished_at = now()", "fresh"),
      ("UPDATE salesforce.opportunity SET _stale = true", "stale"),
      ("UPDATE salesforce._etl_snapshot SET state = 'awaited'", "copying"),
      ("UPDATE salesforce._etl_snapshot SET state = 'complete'", "stale"),
      ("UPDATE salesforce.opportunity SET _stale = false, _partial = true", "stale"),
      // It lacks fields that the user may not see.
      ("UPDATE salesforce.opportunity SET _read_at = now()", "fresh"),
      ("\(noted) ('Opportunity', 'wildcard', NULL, 'a')", "stale"),
      (settled, "fresh"),
      ("\(noted) ('Opportunity', 'missing', 'q', 'snapshot')", "stale"),
      (settled, "fresh"),
      ("\(column) 'filling' WHERE column_name = 'name'", "stale"),
      ("\(column) 'complete'", "fresh"),
      ("SET pubsub_etl.late_after = '1000 years'", "fresh"),
      ("SET pubsub_etl.late_after = '-100 years'", "late"),
      ("RESET pubsub_etl.late_after", "fresh"),
      (
        "UPDATE salesforce._etl_checkpoint SET topics = jsonb_set(topics, "
          + "'{\(SinkRun.topic),complete_through_ms}', to_jsonb(floor(1000 * "
          + "extract(epoch FROM now() - interval '119 minutes'))))", "fresh"
      ),
      (
        "UPDATE salesforce._etl_checkpoint SET topics = jsonb_set(topics, "
          + "'{\(SinkRun.topic),complete_through_ms}', to_jsonb(floor(1000 * "
          + "extract(epoch FROM now() - interval '121 minutes'))))", "late"
      ),
      (
        "UPDATE salesforce._etl_checkpoint SET topics = topics #- "
          + "'{\(SinkRun.topic),complete_through_ms}'", "late"
      ),
    ]
    // What no run stores is not fresh, and breaks no view.
    let hostile = [
      ("now() + interval '1 day'", "late"), ("now()", "fresh"), ("'infinity'::timestamptz", "late"),
    ].map { time, state in ("to_jsonb(floor(1000 * extract(epoch FROM \(time))))", state) }
    let junk = ["null", "\"Infinity\"", "\"soon\"", "1e999", "-1", "{}"].map { ("'\($0)'", "late") }
    let stored = (hostile + junk).map { value, state in
      (
        statement: "UPDATE salesforce._etl_checkpoint SET topics = jsonb_set(topics, "
          + "'{\(SinkRun.topic),complete_through_ms}', \(value))", state: state
      )
    }
    for step in steps + stored {
      try run.eye.execute(step.statement)
      #expect(
        try run.eye.rows(
          "SELECT state FROM salesforce._freshness WHERE table_name = 'opportunity'")
          == [[step.state]], "\(step.statement)")
    }
  }

  /// The tables that lack the events of dead letters: `opportunity 1`.
  private func lacking(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT concat_ws(' ', table_name, dead_letters) FROM salesforce._freshness \
      WHERE state = 'stale' ORDER BY 1
      """)
  }

  private func letter(_ number: Int, topic: String = SinkRun.topic) -> DeadLetter {
    DeadLetter(
      topic: topic, replayID: ReplayID([UInt8(number)]), eventID: "e\(number)", schemaID: "s",
      payload: [], reason: "r", epoch: 1, ordinal: Int64(number))
  }

  @Test("The tables of a refused event are stale until its record is read, even without a mark")
  func refusedEvent() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = UTCTime.now()
    try run.eye.execute(
      """
      UPDATE salesforce.opportunity SET _partial = false;
      ALTER TABLE salesforce.opportunity ADD CHECK (id <> 'odd') NOT VALID
      """)
    try run.write(["odd"])
    try run.commit()
    #expect(try run.stale() == [])
    #expect(try self.lacking(run) == ["opportunity 1", "opportunity_history 1"])
    // The record's row cannot be stored, so a drop does not end it.
    let stored = try CheckpointTable(pipeline: "opps", sink: "warehouse", database.configuration())
    let replayID = try #require(
      try run.eye.column("SELECT replay_id FROM salesforce._etl_resync").first)
    try stored.drop([.init(entity: "Opportunity", replayID: replayID, epoch: 1, ordinal: 0)])
    #expect(try self.lacking(run) == ["opportunity 1", "opportunity_history 1"])
    try run.eye.begin()
    try ResyncTable(entity: "Opportunity", schema: "salesforce").close(
      settled: ["odd": 0], current: #require(run.sink.pending.first?.tables.current),
      over: run.eye)
    try run.eye.execute("COMMIT")
    #expect(try self.lacking(run) == [])
  }

  @Test("Tables are stale while the letter of an event that could not be decoded waits")
  func undecodableEvent() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = UTCTime.now()
    try run.eye.execute("UPDATE salesforce.opportunity SET _partial = false")
    _ = try run.sink.sealAndPrepare(run.positions, letters: (1...3).map { self.letter($0) })
    try run.sink.commitPatiently()
    #expect(try self.lacking(run) == ["opportunity 3", "opportunity_history 3"])
    let stored = try CheckpointTable(pipeline: "opps", sink: "warehouse", database.configuration())
    func drop(_ entity: String, _ number: Int) throws {
      try stored.drop([.init(entity: entity, replayID: "0\(number)", epoch: 1, ordinal: 0)])
    }
    try drop("Account", 1)
    #expect(try self.lacking(run) == ["opportunity 3", "opportunity_history 3"])
    try drop("Opportunity", 1)
    #expect(try self.lacking(run) == ["opportunity 2", "opportunity_history 2"])
    try ResyncTable.closeUndecoded(
      eventIDs: ["e2"], replayIDs: [], schema: "salesforce", over: run.eye)
    #expect(try self.lacking(run) == ["opportunity 1", "opportunity_history 1"])
    try drop("Opportunity", 3)
    #expect(try self.lacking(run) == [])
  }

  @Test("Letters that are lost are dropped, but for those that still wait")
  func lostLetters() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = UTCTime.now()
    try run.eye.execute("UPDATE salesforce.opportunity SET _partial = false")
    _ = try run.sink.sealAndPrepare(run.positions, letters: (1...3).map { self.letter($0) })
    try run.sink.commitPatiently()
    // One that the database has refused has a place in the stream.
    try run.eye.execute(
      """
      INSERT INTO salesforce._etl_resync (entity, kind, replay_id, event_id, epoch, ordinal) \
      VALUES ('Opportunity', 'dead_letter', '04', 'e4', 1, 4)
      """)
    let stored = try CheckpointTable(pipeline: "opps", sink: "warehouse", database.configuration())
    func lacking() throws -> Int? {
      let rows = try self.lacking(run)
      return rows.first.flatMap { Int($0.split(separator: " ")[1]) }
    }
    try stored.drop(topic: "/data/AccountChangeEvent", (1, 0...9), but: [])
    #expect(try lacking() == 4)
    try stored.drop(topic: SinkRun.topic, (1, 5...9), but: ["01", "02"])
    #expect(try lacking() == 3)
    try stored.drop(topic: SinkRun.topic, (1, 0...9), but: ["01", "02"])
    #expect(try lacking() == 2)
    try stored.drop(topic: SinkRun.topic, nil, but: ["01"])
    #expect(try lacking() == 1)
    try stored.drop(topic: SinkRun.topic, nil, but: [])
    #expect(try lacking() == nil)
  }

  @Test("A letter of a channel concerns each object of the channel")
  func undecodableEventOfChannel() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.completeThrough = UTCTime.now()
    try run.eye.execute("UPDATE salesforce.opportunity SET _partial = false")
    let channel = "/data/ChangeEvents"
    _ = try run.sink.sealAndPrepare(run.positions, letters: [self.letter(1, topic: channel)])
    try run.sink.commitPatiently()
    #expect(try self.lacking(run) == [])
    try run.eye.execute(
      """
      UPDATE salesforce._etl_checkpoint SET topics = jsonb_build_object('\(channel)', \
      topics -> '\(SinkRun.topic)')
      """)
    #expect(try self.lacking(run) == ["opportunity 1", "opportunity_history 1"])
  }

  @Test("Records lost by an overflow are missing until all are read again")
  func noted() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }.begin()
    run.sink.close()
    try run.eye.execute(
      """
      INSERT INTO salesforce._etl_resync (entity, kind, record_id, event_id, done_at) VALUES \
      ('Opportunity', 'overflow', NULL, 'a', NULL), ('Opportunity', 'wildcard', NULL, 'b', NULL), \
      ('Opportunity', 'wildcard', NULL, 'c', now()), ('Account', 'overflow', NULL, 'a', NULL), \
      ('Opportunity', 'missing', 'r', 'snapshot', NULL), ('Opportunity', 'gap', 'r', 'd', NULL)
      """)
    let found = try self.freshness(database)
    #expect(found.map(\.table) == ["opportunity", "opportunity_history"])
    #expect(found.map(\.missingRanges) == [2, 2])
    #expect(found.map(\.waitingForRepair) == [1, nil])
  }

  @Test("After a position set by hand no completeness is known, and its tables stay listed")
  func setByHand() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    let stored = try CheckpointTable(
      pipeline: "opps", sink: "warehouse", database.configuration())
    let state = try #require(try stored.read())
    try stored.set(
      [
        SinkRun.topic: TopicPosition(beginningEpoch: 9, start: .earliest),
        "/data/Other": TopicPosition(beginningEpoch: 9, start: .earliest),
      ], expecting: state,
      owner: LeaseOwner(place: "host /state", identity: "host /state", processID: 7),
      command: "c")
    try stored.commit()
    let tables = try self.freshness(database)
    #expect(tables.map(\.topics) == [[SinkRun.topic], [SinkRun.topic]])
    #expect(tables.map(\.completeThrough) == [nil, nil])
    let changed = try #require(try stored.read())
    #expect(changed.positions.count == 2)
  }

  @Test(
    "Tables of an earlier version are found by name or by what a channel has brought",
    arguments: [SinkRun.topic, "/data/ChangeEvents", "/data/Other__chn"])
  func upgrade(topic: String) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    try run.eye.execute(
      """
      UPDATE salesforce._etl_checkpoint SET topics = jsonb_build_object('\(topic)', \
      (topics -> '\(SinkRun.topic)') - 'tables' - 'complete_through_ms');
      UPDATE salesforce.opportunity_history SET _topic = '\(topic)' WHERE '\(topic)' NOT LIKE '%Other%';
      DROP VIEW salesforce._freshness;
      CREATE VIEW salesforce._freshness AS SELECT t.table_name, t.entity, c.pipeline, c.sink, \
      c.complete_through, c.committed_at AS last_run, 0::bigint AS stale, 0::bigint AS partial, \
      0::numeric AS holes FROM salesforce._etl_table AS t \
      LEFT JOIN salesforce._etl_checkpoint AS c ON true
      """)
    // Before the first run of this version the earlier view is read as it is.
    #expect(try self.freshness(database).map(\.topics) == [[], []])
    let next = try SinkRun(database, ordinal: run.ordinal)
    try next.sink.open()
    _ = try next.sink.sealAndPrepare([
      topic: ["epoch": 1, "next_ordinal": 1, "complete_through_ms": 5000]
    ])
    try next.sink.commitPatiently()
    let isFed = topic != "/data/Other__chn"
    #expect(
      try self.freshness(database).map(\.table)
        == (isFed ? ["opportunity", "opportunity_history"] : []))
    for table in try self.freshness(database) {
      #expect(table.topics == [topic] && table.completeThrough == 5000)
    }
    #expect(next.refused.isEmpty)
  }
}
