import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Records as they were", .enabled(if: PostgresCluster.isAvailable)) struct RecordStatesTests {
  private static let schema = SQLIdentifier.quoted(SampleTables.schema)

  private static func update(_ tables: SampleTables) throws -> ReportingViews.Outcome {
    let views = ReportingViews(schema: SampleTables.schema)
    return try tables.connection.transaction { () throws(PostgresError) in
      try views.updateStates(
        of: tables.current, history: tables.history, over: tables.connection)
    }
  }

  private static func refold(_ tables: SampleTables) throws {
    _ = try Refold(history: tables.history, current: tables.current, delete: .mark)
      .refoldAll(over: tables.connection) { _ in }
  }

  /// Name, order and `_stale`, by record ID.
  private static func states(_ tables: SampleTables, at time: Int64) throws -> [String: [String]] {
    let rows = try tables.rows(
      """
      SELECT id, name, "order", _stale FROM \(self.schema).thing_at(to_timestamp(\(time)))
      """)
    let parts = rows.map { $0.split(separator: "|", omittingEmptySubsequences: false) }
    return Dictionary(
      parts.map { (String($0[0]), $0.dropFirst().map(String.init)) },
      uniquingKeysWith: { _, _ in ["twice"] })
  }

  @Test("At every moment, each record is as it was in the org, or marked")
  func randomHistories() async throws {
    var counts = (certain: 0, all: 0)
    for seed in 1...10 as ClosedRange<UInt64> {
      let found = try await self.randomHistory(seed: seed)
      counts = (counts.certain + found.certain, counts.all + found.all)
    }
    #expect(counts.certain * 4 > counts.all, "\(counts)")
  }

  /// The number of states that are not marked, and of all.
  private func randomHistory(seed: UInt64) async throws -> (certain: Int, all: Int) {
    let tables = try await SampleTables.complete()
    #expect(try Self.update(tables) == .created)
    #expect(try Self.update(tables) == .unchanged)
    var org = SampleOrg(seed: seed, records: 3)
    for _ in 0..<40 { try org.step(into: tables, withDeletions: true) }
    try Self.refold(tables)
    var counts = (certain: 0, all: 0)
    let times = Set(org.states.values.flatMap { $0.map(\.since) }).sorted().filter { $0 > 0 }
    for time in times.flatMap({ [$0 - 1, $0, $0 + 3] }) + [org.now + 1000] {
      let found = try Self.states(tables, at: time)
      for record in org.states.keys {
        let state = org.state(of: record, at: time)
        guard let row = found[record] else {
          let isKnown = time >= org.knownFrom[record] ?? .max
          #expect(state?.values == nil || !isKnown, "\(record) is missing at \(time)")
          continue
        }
        counts.all += 1
        guard row[2] == "f" else { continue }
        counts.certain += 1
        let expected = state?.values.map {
          [SampleOrg.text($0["name"]), SampleOrg.text($0["order"])]
        }
        #expect(Array(row[..<2]) == expected, "\(record) at \(time)")
      }
      let versions = try tables.rows(
        """
        SELECT id, name, "order", _stale FROM \(Self.schema).thing_versions \
        WHERE _valid_from <= to_timestamp(\(time)) \
        AND (_valid_to > to_timestamp(\(time)) OR _valid_to IS NULL)
        """)
      for version in versions {
        let parts = version.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        // What a later read shows of a loss is known of the present state only.
        guard parts[3] == "f", let row = found[parts[0]], row[2] == "f" else { continue }
        #expect(row == Array(parts.dropFirst()), "version of \(parts[0]) at \(time)")
      }
      #expect(Set(versions.map { String($0.prefix(1)) }) == Set(found.keys), "at \(time)")
    }
    return counts
  }

  @Test("View and function keep their grants and get new columns")
  func newColumns() async throws {
    var tables = try await SampleTables.complete()
    _ = try Self.update(tables)
    try tables.connection.execute(
      """
      CREATE ROLE \(tables.database)_reader; \
      REVOKE ALL ON FUNCTION \(Self.schema).thing_at(timestamptz) FROM PUBLIC; \
      GRANT EXECUTE ON FUNCTION \(Self.schema).thing_at(timestamptz) TO \(tables.database)_reader; \
      GRANT SELECT ON \(Self.schema).thing_versions TO \(tables.database)_reader; \
      ALTER TABLE \(tables.history.qualifiedName) ADD COLUMN extra text; \
      ALTER TABLE \(tables.current.qualifiedName) ADD COLUMN extra text
      """)
    let column = TableColumn(name: "extra", type: .text, path: "Extra")
    tables.history.dataColumns.append(column)
    tables.current.dataColumns.append(column)
    #expect(try Self.update(tables) == .replaced)
    #expect(try Self.update(tables) == .unchanged)
    #expect(try tables.rows("SELECT extra FROM \(Self.schema).thing_at(now())") == [])
    #expect(try tables.rows("SELECT extra FROM \(Self.schema).thing_versions") == [])
    let rights = try tables.rows(
      """
      SELECT has_function_privilege('\(tables.database)_reader', p.oid, 'EXECUTE'), \
      has_table_privilege('\(tables.database)_reader', '\(Self.schema).thing_versions', 'SELECT'), \
      EXISTS (SELECT FROM aclexplode(p.proacl) AS a WHERE a.grantee = 0) \
      FROM pg_proc AS p WHERE p.proname = 'thing_at' AND p.pronargs = 1
      """)
    #expect(rights == ["t|t|f"])
    try tables.connection.execute(
      """
      CREATE VIEW \(Self.schema).mine AS SELECT id FROM \(Self.schema).thing_at(now()); \
      ALTER TABLE \(tables.history.qualifiedName) ADD COLUMN more text; \
      ALTER TABLE \(tables.current.qualifiedName) ADD COLUMN more text
      """)
    let more = TableColumn(name: "more", type: .text, path: "More")
    tables.history.dataColumns.append(more)
    tables.current.dataColumns.append(more)
    #expect(try Self.update(tables) == .kept)
    #expect(try tables.rows("SELECT extra FROM \(Self.schema).thing_at(now())") == [])
    try tables.connection.execute("DROP VIEW \(Self.schema).mine")
  }

  @Test("Choices of a multi-select picklist are kept, and so is their absence")
  func choices() async throws {
    let tables = try await SampleTables.complete()
    _ = try Self.update(tables)
    for (ordinal, tags) in [["a", "b;\"c"], nil, ["d"]].enumerated() {
      try tables.insert(
        SampleEvent(
          change: ordinal == 0 ? .create : .update, recordID: "1", ordinal: Int64(ordinal),
          time: Int64(ordinal) * 100, values: ["tags": tags.map { .texts($0) } ?? .null]))
    }
    try Self.refold(tables)
    let query = "SELECT to_json(tags) FROM \(Self.schema)."
    #expect(
      try tables.rows(query + "thing_versions ORDER BY _valid_from") == [
        "[\"a\",\"b;\\\"c\"]", "-", "[\"d\"]",
      ])
    #expect(try tables.rows(query + "thing_at(to_timestamp(150))") == ["-"])
  }

  @Test("A function or view of that name that somebody else made is kept")
  func foreignFunction() async throws {
    let tables = try await SampleTables.complete()
    let name = "\(Self.schema).thing_at"
    try tables.connection.execute(
      "CREATE FUNCTION \(name)(timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 42'")
    #expect(try Self.update(tables) == .foreign)
    #expect(try tables.rows("SELECT \(name)(now())") == ["42"])
    try tables.connection.execute(
      "DROP FUNCTION \(name); CREATE VIEW \(Self.schema).thing_versions AS SELECT ''::text AS id")
    #expect(try Self.update(tables) == .foreign)
    #expect(try tables.rows("SELECT to_regprocedure('\(name)(timestamptz)')") == ["-"])
  }

  @Test("Columns may have any name")
  func columnNames() async throws {
    let tables = try await SampleTables.complete(width: SampleTables.allWidth)
    #expect(try Self.update(tables) == .created)
    try tables.insert(
      SampleEvent(
        change: .create, recordID: "1", ordinal: 1, time: 100,
        values: ["at": .text("a"), "x": .text("c")]))
    try Self.refold(tables)
    #expect(
      try tables.rows("SELECT at, epoch, x FROM \(Self.schema).thing_versions") == ["a|-|c"])
  }

  @Test("A version during which a change was lost is stale, as is the record at its end")
  func lossWithinVersion() async throws {
    let tables = try await SampleTables.complete()
    #expect(try Self.update(tables) == .created)
    for (record, time) in [("1", 100 as Int64), ("2", 101)] {
      try tables.insert(
        SampleEvent(
          change: .create, recordID: record, ordinal: time, time: time,
          values: ["name": .text("a")]))
    }
    try tables.connection.execute(
      """
      INSERT INTO \(Self.schema)._etl_resync (entity, kind, record_id, event_id, epoch, ordinal, \
      commit_timestamp, noted_at) VALUES ('Thing', 'dead_letter', '1', 'x', 1, 150, \
      to_timestamp(150), to_timestamp(151))
      """)
    try Self.refold(tables)
    #expect(
      try tables.rows(
        "SELECT id, _is_current, _stale FROM \(Self.schema).thing_versions ORDER BY id")
        == ["1|t|t", "2|t|f"])
    #expect(try Self.states(tables, at: 160)["1"]?.last == "t")
  }

  @Test("A record of which only updates are known is there, and stale")
  func updatesAlone() async throws {
    let tables = try await SampleTables.complete()
    #expect(try Self.update(tables) == .created)
    try tables.insert(
      SampleEvent(
        change: .update, recordID: "1", ordinal: 1, time: 100, values: ["name": .text("a")]))
    try Self.refold(tables)
    #expect(try Self.states(tables, at: 99).isEmpty)
    #expect(try Self.states(tables, at: 200) == ["1": ["a", "-", "t"]])
    #expect(
      try tables.rows("SELECT id, name, _stale FROM \(Self.schema).thing_versions") == ["1|a|t"])
  }

  @Test("Functions and operators in the caller's search_path are not called")
  func searchPath() async throws {
    let tables = try await SampleTables.complete()
    #expect(try Self.update(tables) == .created)
    try tables.insert(
      SampleEvent(
        change: .create, recordID: "1", ordinal: 1, time: 100, values: ["name": .text("a")]))
    try tables.insert(
      SampleEvent(
        change: .update, recordID: "1", ordinal: 2, time: 200, values: ["name": .text("b")]))
    try Self.refold(tables)
    try tables.connection.execute(
      """
      CREATE FUNCTION public.cardinality(text[]) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0'; \
      CREATE FUNCTION public.joined(text[], text[]) RETURNS text[] LANGUAGE sql \
      AS 'SELECT ARRAY[(1 / 0)::text]'; \
      CREATE FUNCTION public.common(text[], text[]) RETURNS boolean LANGUAGE sql \
      AS 'SELECT 1 / 0 = 1'; \
      CREATE OPERATOR public.|| (FUNCTION = public.joined, LEFTARG = text[], RIGHTARG = text[]); \
      CREATE OPERATOR public.&& (FUNCTION = public.common, LEFTARG = text[], RIGHTARG = text[]); \
      CREATE AGGREGATE public.array_agg(text) (SFUNC = array_append, STYPE = text[], \
      INITCOND = '{wrong}'); \
      CREATE AGGREGATE public.array_agg(boolean) (SFUNC = array_append, STYPE = boolean[], \
      INITCOND = '{false}')
      """)
    #expect(try Self.states(tables, at: 150) == ["1": ["a", "-", "f"]])
    #expect(try Self.states(tables, at: 250) == ["1": ["b", "-", "f"]])
  }

  @Test("A compound of which updates have parts has no such view")
  func compounds() async throws {
    var tables = try await SampleTables.complete()
    tables.history.dataColumns.append(
      TableColumn(name: "address", type: .jsonb, path: "Address", isCompound: true))
    #expect(try Self.update(tables) == .unchanged)
    #expect(try tables.rows("SELECT to_regclass('\(Self.schema).thing_versions')") == ["-"])
  }
}
