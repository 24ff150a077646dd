import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// An event may be refused; it may not stop the run, nor the next one.
@Suite("Hostile events", .enabled(if: PostgresCluster.isAvailable)) struct HostileEventTests {
  struct Header: Sendable, CustomTestStringConvertible {
    var name: String
    var metadata: [Int: [UInt8]] = [:]
    var sequenceNumber: Int64?
    var commitTimestamp: Int64? = 1_771_300_995_000
    var isRefused = true
    var testDescription: String { self.name }
  }

  /// Does not compress.
  private static func noise(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(state: 5)
    return (0..<count).map { _ in UInt8.random(in: 33...126, using: &generator) }
  }

  static let headers: [Header] = [
    Header(name: "earliest time", commitTimestamp: .min),
    Header(name: "latest time", commitTimestamp: .max),
    Header(name: "time beyond PostgreSQL's", commitTimestamp: 9_224_318_016_000_000),
    Header(
      name: "PostgreSQL's last time", commitTimestamp: 9_224_318_015_999_999, isRefused: false),
    Header(name: "year 0", commitTimestamp: -62_135_596_800_001, isRefused: false),
    Header(name: "sequence number of 64 bits", sequenceNumber: 1 << 40),
    Header(name: "record ID of 20 kB", metadata: [MetadataSlot.recordID: Self.noise(20_000)]),
    Header(name: "event ID of 20 kB", metadata: [MetadataSlot.eventID: Self.noise(20_000)]),
    Header(
      name: "both IDs of 1.4 kB",
      metadata: [
        MetadataSlot.recordID: Self.noise(1400), MetadataSlot.eventID: Self.noise(1400),
      ]),
    Header(
      name: "U+0000 in a refused event's ID",
      metadata: [
        MetadataSlot.eventID: Array("a\0b".utf8), MetadataSlot.commitNumber: Array("x".utf8),
      ]),
    Header(name: "a record ID that is no UTF-8", metadata: [MetadataSlot.recordID: [0xFF, 0xFE]]),
    Header(
      name: "texts that need no index",
      metadata: [
        MetadataSlot.commitUser: Self.noise(20_000), MetadataSlot.transactionKey: [0],
        MetadataSlot.changeOrigin: Self.noise(20_000), MetadataSlot.entity: [],
      ], isRefused: false),
  ]

  private func append(_ header: Header, to run: SinkRun) throws {
    let batch = RecordBatch(layout: SinkRun.layout())
    var metadata = header.metadata.mapValues { TestCell.bytes($0) }
    if let number = header.sequenceNumber {
      metadata[MetadataSlot.sequenceNumber] = .integer(number)
    }
    batch.addChange(
      "UPDATE", "bad", ordinal: run.ordinal, commitTimestamp: header.commitTimestamp,
      metadata: metadata)
    try run.sink.take(batch)
    run.advance()
  }

  @Test(
    "An event with a hostile header is stored, or refused and noted, and runs continue",
    arguments: HostileEventTests.headers, PostgresSinkConfiguration.Mode.allCases)
  func header(_ header: Header, _ mode: PostgresSinkConfiguration.Mode) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) { $0.mode = mode }.begin()
    try run.write(["before"])
    let place = run.ordinal
    try self.append(header, to: run)
    try run.write(["after"])
    try run.commit()
    let table = mode == .current ? "opportunity" : "opportunity_history"
    let rows = "SELECT count(*) FROM salesforce.\(table) WHERE NOT _stale AND _ordinal = \(place)"
    let isStored =
      try run.eye.column(
        mode == .current ? rows : rows.replacing("NOT _stale AND ", with: "")) == ["1"]
    let isRefused = run.refused.map(\.ordinal) == [place]
    #expect(isStored != isRefused)
    // An index of one table only limits the IDs of its rows.
    if mode == .both { #expect(isRefused == header.isRefused) }
    #expect(try run.noted().count == (isRefused ? 1 : 0))
    for name in ["before", "after"] {
      let column = mode == .current ? "id" : "_record_id"
      #expect(
        try run.eye.column("SELECT \(column) FROM salesforce.\(table) WHERE \(column) = '\(name)'")
          == [name])
    }
    run.sink.close()
    let next = try SinkRun(database, ordinal: run.ordinal) { $0.mode = mode }
    #expect(try next.sink.open()?[SinkRun.topic]?.nextOrdinal == run.ordinal)
    try next.write(["next"])
    try next.commit()
    #expect(next.refused.isEmpty)
  }

  @Test("Values that a database with another encoding cannot store are noted")
  func encoding() async throws {
    let cluster = try await PostgresCluster.shared
    let database = try TestDatabase(cluster)
    try cluster.query("DROP DATABASE \(database.name)", database: "postgres")
    try cluster.query(
      """
      CREATE DATABASE \(database.name) ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' \
      TEMPLATE template0
      """, database: "postgres")
    let run = try SinkRun(database).begin()
    try run.write(["❄", "ä"])
    try run.commit()
    #expect(run.refused.map(\.ordinal) == [1])
    #expect(try run.history() == ["first", "ä"])
    #expect(try run.noted().map { $0.hasPrefix("?_") } == [true])
  }

  @Test("A record that the database refuses to mark as stale is only noted")
  func markRefused() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      ALTER TABLE salesforce.opportunity ADD CHECK (id <> 'r1' AND (name IS NOT NULL OR id <> 'r2'))
      """)
    try run.write(["r1"])
    try run.write(["r2", "r3"]) { name in
      [SinkRun.name: name == "r2" ? .null : .text(name)]
    }
    try run.commit()
    #expect(run.refused.map(\.ordinal) == [1, 2])
    #expect(try run.current() == ["first", "r3"])
    #expect(try run.noted() == ["r1", "r2"])
  }

  @Test("Each record of a refused event is noted, and no other")
  func severalRecords() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.addChange(
      "UPDATE", "", ordinal: run.ordinal,
      metadata: [
        MetadataSlot.recordID: .null, MetadataSlot.recordIDs: .text(#"["a,b","c\"d"]"#),
        MetadataSlot.commitNumber: .text("none"),
      ])
    try run.sink.take(batch)
    run.advance()
    try run.commit()
    #expect(try run.noted().sorted() == ["a,b", "c\"d"])
    #expect(try run.stale().sorted() == ["a,b", "c\"d"])
  }

  @Test("Events without an ID stay distinct when a stream is read again")
  func withoutID() async throws {
    let database = try await TestDatabase()
    func run(epoch: Int, _ ordinals: ClosedRange<Int64>) throws -> SinkRun {
      let run = try SinkRun(database, ordinal: ordinals.upperBound, epoch: epoch)
      try run.sink.open(creating: [:])
      let batch = RecordBatch(layout: SinkRun.layout())
      batch.epoch = epoch
      for ordinal in ordinals {
        batch.addChange("UPDATE", "r", ordinal: ordinal, eventID: "")
      }
      try run.sink.take(batch)
      try run.commit()
      run.sink.close()
      return run
    }
    #expect(try run(epoch: 1, 0...1).history() == ["r", "r"])
    #expect(try run(epoch: 2, 0...2).history() == ["r", "r", "r"])
  }

  struct Setting: Sendable, CustomTestStringConvertible {
    var seed: UInt64
    var mode: PostgresSinkConfiguration.Mode
    var delete: PostgresSinkConfiguration.DeletePolicy
    var testDescription: String { "\(self.seed) \(self.mode) \(self.delete)" }
  }

  static let settings: [Setting] = (1...8).map { seed in
    Setting(
      seed: seed, mode: seed % 4 == 1 ? .current : seed % 4 == 2 ? .history : .both,
      delete: seed % 2 == 0 ? .mark : .remove)
  }

  @Test(
    "Random hostile events are each stored or refused once, and the database stays usable",
    arguments: HostileEventTests.settings)
  func random(_ setting: Setting) async throws {
    let database = try await TestDatabase()
    var events = HostileEvents(seed: setting.seed)
    var ordinal: Int64 = 0
    for pass in 0..<2 {
      let run = try SinkRun(database, ordinal: ordinal) {
        $0.mode = setting.mode
        $0.delete = setting.delete
      }
      #expect(try run.sink.open(creating: [:])?[SinkRun.topic]?.nextOrdinal ?? 0 == ordinal)
      for _ in 0..<3 {
        let first = run.ordinal
        for layout in HostileEvents.layouts {
          let batch = RecordBatch(layout: layout)
          for _ in 0..<25 {
            events.append(to: batch, ordinal: run.ordinal)
            run.advance()
          }
          try run.sink.take(batch)
        }
        try run.commit()
        try self.check(run, first..<run.ordinal, setting.mode)
      }
      ordinal = run.ordinal
      #expect(run.refused.count < 3 * 75 * 3 / 4, "pass \(pass): too few events are taken")
      run.sink.close()
    }
    try self.checkRefold(database, setting)
    // The same again, as after a reset: nothing with an ID is reported twice.
    let again = try SinkRun(database, epoch: 2) {
      $0.mode = setting.mode
      $0.delete = setting.delete
    }
    try again.sink.open()
    var sameEvents = HostileEvents(seed: setting.seed)
    for _ in 0..<2 {
      for layout in HostileEvents.layouts {
        let batch = RecordBatch(layout: layout)
        batch.epoch = 2
        for _ in 0..<25 {
          sameEvents.append(to: batch, ordinal: again.ordinal)
          again.advance()
        }
        try again.sink.take(batch)
      }
      try again.commit()
    }
    #expect(try again.storedOrdinal() == "\(again.ordinal)")
    if setting.mode != .current {
      // Those of epoch 2 are in no history, unless they cannot be told apart or were refused before.
      let new = try again.eye.column(
        """
        SELECT count(*) FROM salesforce.opportunity_history AS h WHERE _epoch = 2 AND EXISTS (\
        SELECT FROM salesforce.opportunity_history AS o WHERE o._epoch = 1 \
        AND o._event_id = h._event_id AND o._record_id IS NOT DISTINCT FROM h._record_id \
        AND (o._event_id <> '' OR o._replay_id = h._replay_id))
        """)
      #expect(new == ["0"])
    }
    try self.checkRefold(database, setting)
  }

  private func check(
    _ run: SinkRun, _ ordinals: Range<Int64>, _ mode: PostgresSinkConfiguration.Mode
  ) throws {
    let refused = run.refused.map(\.ordinal).filter { ordinals.contains($0) }
    #expect(Set(refused).count == refused.count)
    #expect(try run.storedOrdinal() == "\(ordinals.upperBound)")
    let noted = try run.eye.column(
      """
      SELECT DISTINCT ordinal FROM salesforce._etl_resync WHERE kind = 'dead_letter' \
      AND epoch = 1 AND ordinal >= \(ordinals.lowerBound)
      """)
    #expect(Set(noted).symmetricDifference(refused.map { "\($0)" }) == [])
    guard mode != .current else { return }
    let stored = try run.eye.column(
      """
      SELECT DISTINCT _ordinal FROM salesforce.opportunity_history \
      WHERE _epoch = 1 AND _ordinal >= \(ordinals.lowerBound)
      """)
    let missing = ordinals.filter { !refused.contains($0) && !stored.contains("\($0)") }
    #expect(missing.isEmpty)
    // An event of several records may have lost some of them; none else is in both places.
    let both = try run.eye.column(
      """
      SELECT DISTINCT h._ordinal FROM salesforce.opportunity_history AS h \
      JOIN salesforce._etl_resync AS r ON r.kind = 'dead_letter' AND r.epoch = h._epoch \
      AND r.ordinal = h._ordinal AND r.record_id = h._record_id
      """)
    #expect(both == [])
  }

  /// What is loaded and what is rebuilt agree.
  private func checkRefold(_ database: TestDatabase, _ setting: Setting) throws {
    guard setting.mode == .both else { return }
    let connection = try database.connect()
    let tables = try TableCatalog(database.configuration()).storedTables(over: connection)
    for tables in tables {
      let refold = Refold(
        history: tables.history, current: tables.current, delete: setting.delete)
      #expect(try refold.refoldAll(over: connection).changed == 0)
    }
  }
}
