import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// Rows that are sent while their transaction grows are in it once, whatever happens meanwhile.
@Suite("Rows sent ahead", .enabled(if: PostgresCluster.isAvailable)) struct SendAheadTests {
  /// Two of them are enough to be sent.
  private static let long = String(repeating: "x", count: 300_000)

  private func writeLong(_ run: SinkRun, _ names: [String]) throws {
    try run.write(names) { [SinkRun.parent: .text(Self.long + $0)] }
  }

  private func isSending(_ run: SinkRun) throws -> Bool {
    try run.eye.column(
      """
      SELECT count(*) > 0 FROM pg_locks WHERE granted AND mode = 'RowExclusiveLock' \
      AND relation = 'salesforce.opportunity_history'::regclass
      """) == ["t"]
  }

  private func check(_ run: SinkRun, _ names: [String]) throws {
    #expect(try run.history() == names)
    #expect(try run.current() == names)
    #expect(try run.storedOrdinal() == "\(run.ordinal)")
    #expect(run.sink.committedRowCount == names.count)
    // Nothing of it stays for the next transaction.
    try run.write(["next"])
    try run.commit()
    #expect(try run.history() == names + ["next"])
  }

  @Test("Rows sent ahead reach the server before the commit and stay invisible to readers")
  func sent() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.write(["a"])
    #expect(try !self.isSending(run))
    try self.writeLong(run, ["b", "c", "d"])
    #expect(try self.isSending(run))
    #expect(try run.history() == ["first"])
    try self.writeLong(run, ["e", "f"])
    try run.write(["g"])
    try run.commit()
    try self.check(run, ["first", "a", "b", "c", "d", "e", "f", "g"])
  }

  @Test(
    "A refused row sent ahead becomes a dead letter, and the others stay", arguments: ["b", "f"])
  func refused(_ name: String) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.eye.execute(
      "ALTER TABLE salesforce.opportunity_history ADD CHECK (_record_id <> '\(name)')")
    try self.writeLong(run, ["a", "b", "c"])
    try self.writeLong(run, ["d", "e", "f"])
    try run.commit()
    #expect(run.refused.map(\.ordinal) == [name == "b" ? 2 : 6])
    #expect(try run.stale() == [name])
    try self.check(run, ["first", "a", "b", "c", "d", "e", "f"].filter { $0 != name })
  }

  @Test("A transient error while sending ahead is retried", arguments: ["40P01", "57014"])
  func passing(_ sqlState: String) async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try run.disturbHistory("RAISE EXCEPTION 'x' USING ERRCODE = '\(sqlState)'")
    try self.writeLong(run, ["a", "b"])
    try self.writeLong(run, ["c", "d"])
    try run.commit()
    try self.check(run, ["first", "a", "b", "c", "d"])
  }

  @Test("A COPY that is cancelled while it waits for rows is repeated")
  func cancelled() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    // Counts the rows, also those that are rolled back.
    try run.disturbHistory(times: 0, "NULL")
    let count = "SELECT last_value FROM public.disturbance"
    try self.writeLong(run, ["a", "b"])
    while try run.eye.column(count) != ["2"] {}
    let cancelled = try run.eye.column(
      """
      SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
      AND query LIKE 'COPY%' AND state = 'active' AND pid <> pg_backend_pid()
      """)
    #expect(cancelled == ["t"])
    try self.writeLong(run, ["c", "d"])
    try run.commit()
    let rows = try run.eye.column(count).compactMap { Int($0) }
    #expect(rows.first ?? 0 >= 6)
    try self.check(run, ["first", "a", "b", "c", "d"])
  }

  @Test("A terminated server process is replaced, whether or not rows remain to be sent")
  func terminated() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try self.writeLong(run, ["a", "b"])
    try run.terminateBackend()
    try run.commit()
    try self.writeLong(run, ["c", "d"])
    try run.terminateBackend()
    try self.writeLong(run, ["e", "f"])
    try run.commit()
    try self.check(run, ["first", "a", "b", "c", "d", "e", "f"])
  }

  @Test("A new schema among the rows changes the tables and loses no row")
  func newSchema() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    try self.writeLong(run, ["a", "b"])
    let wider = SinkRun.layout(schemaID: "schema-2", [Column("More", 3, .string)])
    try run.write(["c"], layout: wider) { _ in [SinkRun.amount + 1: .text("more")] }
    try self.writeLong(run, ["d", "e"])
    try run.commit()
    #expect(
      try run.eye.column(
        "SELECT _record_id FROM salesforce.opportunity_history WHERE more = 'more'")
        == ["c"])
    try self.check(run, ["first", "a", "b", "c", "d", "e"])
  }

  @Test("A COMMIT that fails on a live connection is repeated with all rows")
  func failedCommit() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    // The last check of the transaction puts off another one, which only COMMIT makes.
    try run.eye.execute(
      """
      CREATE SEQUENCE public.commits; CREATE TABLE public.late (a int);
      CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('public.commits') = 1 THEN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END IF;
      RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON public.late DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION public.fail();
      CREATE FUNCTION public.put_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      SET CONSTRAINTS ALL DEFERRED; INSERT INTO public.late VALUES (1); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER put_off AFTER INSERT ON salesforce.opportunity_history
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW._record_id = 'a')
      EXECUTE FUNCTION public.put_off()
      """)
    try self.writeLong(run, ["a", "b"])
    try run.commit()
    #expect(try run.eye.column("SELECT last_value > 1 FROM public.commits") == ["t"])
    try self.check(run, ["first", "a", "b"])
  }

  @Test("Rows sent ahead are not committed after the lease is lost")
  func fenced() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try self.writeLong(run, ["a", "b"])
    let other = try SinkRun(database, place: "other /state", takesOver: true, ordinal: run.ordinal)
    try other.sink.open()
    #expect(throws: LeaseError.self) { try run.commit() }
    run.sink.close()
    #expect(try other.history() == ["first"])
  }
}
