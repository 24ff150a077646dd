import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Rows that the database does not take: told, noted, their records stale, all others loaded.
@Suite("Refused rows", .enabled(if: PostgresCluster.isAvailable)) struct RefusedRowTests {
  private static let names = (1...40).map { "r\($0)" }

  /// Loads records of which some are refused, and checks what becomes of all.
  private func check(
    _ run: SinkRun, refused: [String], sqlState: String?,
    hasHistory: Bool = true, _ fields: (String) -> [Int: TestCell] = { _ in [:] }
  ) throws {
    let before = run.ordinal
    try run.write(Self.names, fields)
    try run.commit()
    let places = refused.compactMap { Self.names.firstIndex(of: $0) }.map { before + Int64($0) }
    #expect(run.refused.map(\.ordinal).sorted() == places.sorted())
    for event in run.refused {
      #expect(event.topic == SinkRun.topic && event.epoch == 1)
      #expect(event.reason.hasPrefix("refused "))
      #expect(event.reason.contains("(sink 'warehouse'): "))
      #expect(event.refusal?.sink == "warehouse")
      if let sqlState {
        #expect(event.reason.contains(sqlState), "\(event.reason)")
        #expect(event.refusal?.sqlState == sqlState)
      }
    }
    let loaded = ["first"] + Self.names.filter { !refused.contains($0) }
    if hasHistory { #expect(try run.history() == loaded) }
    #expect(try run.current() == loaded)
    #expect(try run.stale() == refused.sorted())
    #expect(try run.noted() == refused)
    #expect(try run.storedOrdinal() == "\(run.ordinal)")
    #expect(run.sink.committedRowCount == loaded.count)
    // Nothing of it stays for the next transaction.
    try run.write(["next"])
    try run.commit()
    #expect(run.refused.count == refused.count)
    #expect(try run.current().last == "next")
  }

  @Test(
    "One, several or all refused rows are found, whatever refuses them",
    arguments: [["r1"], ["r40"], ["r7", "r8", "r23"], Self.names])
  func constraint(_ refused: [String]) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let list = refused.map { "'\($0)'" }.joined(separator: ", ")
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id NOT IN (\(list)))")
    try self.check(run, refused: refused, sqlState: "23514")
  }

  @Test(
    "A trigger on either table may refuse a row, even with its own error code",
    arguments: ["opportunity", "opportunity_history"], ["P0001", "UX001", "22023", "42704"])
  func trigger(table: String, sqlState: String) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.name IN ('r5', 'r6') THEN
      RAISE EXCEPTION 'no %', NEW.name USING ERRCODE = '\(sqlState)'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON salesforce.\(table)
      FOR EACH ROW EXECUTE FUNCTION public.refuse()
      """)
    try self.check(run, refused: ["r5", "r6"], sqlState: sqlState)
    #expect(run.refused.allSatisfy { !$0.reason.contains("r5") })
  }

  @Test(
    "A row whose values an expression of the table fails on is refused, whatever the error's class",
    arguments: ["opportunity", "opportunity_history"],
    [
      ("ALTER TABLE %s ADD q tsquery GENERATED ALWAYS AS (parent::tsquery) STORED", "42601"),
      ("ALTER TABLE %s ADD CHECK (parent <> 'c4nary &' OR parent::regtype IS NULL)", "42601"),
      (
        "ALTER TABLE %s ADD CHECK (parent <> 'c4nary &' OR quote_ident(parent)::regtype IS NULL)",
        "42704"
      ),
      ("CREATE INDEX ON %s ((parent::tsquery))", "42601"),
    ])
  func expression(table: String, statement: (sql: String, sqlState: String)) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      statement.sql.replacing("%s", with: "salesforce.\(table)"))
    try self.check(run, refused: ["r5", "r23"], sqlState: statement.sqlState) { name in
      name == "r5" || name == "r23" ? [SinkRun.parent: .text("c4nary &")] : [:]
    }
    #expect(run.refused.allSatisfy { !$0.reason.contains("c4nary") }, "\(run.refused)")
  }

  @Test("A constraint that COMMIT checks refuses rows like any other")
  func deferred() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      ALTER TABLE salesforce.opportunity ADD UNIQUE (parent) DEFERRABLE INITIALLY DEFERRED
      """)
    try self.check(run, refused: ["r9", "r30"], sqlState: "23505") { name in
      [SinkRun.parent: .text(name == "r9" || name == "r30" ? "r2" : name)]
    }
  }

  @Test("A trigger that is deferred to COMMIT refuses rows like any other")
  func deferredTrigger() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW._record_id = 'r40' THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON salesforce.opportunity_history
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.refuse()
      """)
    try self.check(run, refused: ["r40"], sqlState: "P0001")
  }

  @Test("Of the rows that refer to later rows, only those without a match are refused")
  func lateReferences() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      ALTER TABLE salesforce.opportunity ADD FOREIGN KEY (parent)
      REFERENCES salesforce.opportunity (id) DEFERRABLE INITIALLY DEFERRED
      """)
    try self.check(run, refused: ["r3"], sqlState: "23503") { name in
      switch name {
      case "r1": [SinkRun.parent: .text("r2")]
      case "r2": [SinkRun.parent: .text("r40")]
      case "r3": [SinkRun.parent: .text("nobody")]
      default: [:]
      }
    }
  }

  @Test("Text and numbers beyond the limits of their column are refused")
  func lengths() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      DROP VIEW salesforce.opportunity_live, salesforce._freshness;
      ALTER TABLE salesforce.opportunity_history ALTER parent TYPE varchar(4);
      ALTER TABLE salesforce.opportunity ALTER parent TYPE varchar(4);
      ALTER TABLE salesforce.opportunity ADD CHECK (amount < 1000)
      """)
    try self.check(run, refused: ["r2", "r11"], sqlState: nil) { name in
      switch name {
      case "r2": [SinkRun.parent: .text("12345")]
      case "r3": [SinkRun.parent: .text("äöü€")]
      case "r11": [SinkRun.amount: .double(1000)]
      default: [:]
      }
    }
    #expect(
      run.refused.map { $0.reason.contains("22001") || $0.reason.contains("23514") } == [
        true, true,
      ])
  }

  @Test(
    "Values that a column's type cannot hold are refused before they are sent",
    arguments: PostgresSinkConfiguration.Mode.allCases.filter { $0 != .history })
  func unencodable(_ mode: PostgresSinkConfiguration.Mode) async throws {
    let run = try SinkRun(try await TestDatabase()) {
      $0.mode = mode
      $0.columnTypes = ["Amount": .smallint]
    }.begin()
    try self.check(
      run, refused: ["r2", "r11"], sqlState: nil, hasHistory: mode == .both
    ) { name in
      [SinkRun.amount: .double(name == "r2" ? 70_000 : name == "r11" ? 0.5 : 7)]
    }
  }

  @Test(
    "A refused change makes its record stale even if later changes are accepted",
    arguments: PostgresSinkConfiguration.Mode.allCases.filter { $0 != .history }, [true, false])
  func laterChanges(_ mode: PostgresSinkConfiguration.Mode, isEncodable: Bool) async throws {
    let run = try SinkRun(try await TestDatabase()) {
      $0.mode = mode
      $0.columnTypes = ["Amount": .smallint]
    }.begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity ADD CHECK (parent <> 'refused')")
    try run.write(["a", "b", "c"])
    let refused: [Int: TestCell] =
      isEncodable ? [SinkRun.parent: .text("refused")] : [SinkRun.amount: .double(0.5)]
    try run.write(["a", "b"], type: "UPDATE") { _ in refused }
    try run.write(["a", "c"], type: "UPDATE") { _ in [SinkRun.amount: .double(7)] }
    // A full image holds what the refused change held.
    try run.write(["b"])
    try run.commit()
    // What a full image replaces in the same transaction does not reach the database.
    #expect(run.refused.map(\.ordinal) == (isEncodable ? [4] : [4, 5]))
    #expect(try run.stale() == ["a"])
    #expect(
      try run.eye.rows(
        "SELECT id, parent, amount FROM salesforce.opportunity WHERE id <> 'first' ORDER BY id")
        == [["a", "-", "7"], ["b", "-", "-"], ["c", "-", "7"]])
    #expect(try run.noted() == (isEncodable ? ["a"] : ["a", "b"]))
  }

  @Test("An event with U+0000 is not refused")
  func null() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.write(["a"]) { _ in [SinkRun.parent: .text("x\0y")] }
    try run.commit()
    #expect(run.refused.isEmpty)
    #expect(
      try run.eye.column("SELECT parent FROM salesforce.opportunity WHERE id = 'a'")
        == ["x\u{FFFD}y"])
  }

  @Test("An event of several records is reported once, and its other records are loaded")
  func severalRecords() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id NOT IN ('x', 'z'))")
    let batch = RecordBatch(layout: SinkRun.layout())
    batch.addChange(
      "UPDATE", "", ordinal: 1,
      metadata: [
        MetadataSlot.recordID: .null, MetadataSlot.recordIDs: .text(#"["w","x","y","z"]"#),
      ])
    try run.sink.take(batch)
    try run.commit()
    #expect(run.refused.map(\.ordinal) == [1])
    #expect(try run.history() == ["first", "w", "y"])
    #expect(try run.stale() == ["x", "z"])
    #expect(try run.noted() == ["x", "z"])
  }

  @Test("Many refused rows do not exhaust the server's locks")
  func manyRefused() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_ordinal % 2 = 0)")
    let names = (1...2400).map { "m\($0)" }
    try run.write(names, type: "UPDATE")
    try run.commit()
    #expect(run.refused.count == 1200)
    #expect(try run.history().count == 1201)
    #expect(try run.stale().count == 1200)
  }

  @Test("A broken trigger stops the run instead of refusing rows")
  func brokenTrigger() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      """
      CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.missing VALUES (1); RETURN NEW; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON salesforce.opportunity_history
      FOR EACH ROW EXECUTE FUNCTION public.refuse()
      """)
    try run.write(["a"])
    let error = postgresError { try run.commit() }
    #expect(error?.sqlState == "42P01" && error?.disposition == .configuration)
    #expect(run.refused.isEmpty)
    try run.eye.execute("DROP TRIGGER refuse ON salesforce.opportunity_history")
    try run.commit()
    #expect(try run.history() == ["first", "a"])
  }
}
