import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// While a commit is on its way, rows of the next go over a second connection, and each row is in
/// the tables once, whatever happens to either.
@Suite("Two connections", .enabled(if: PostgresCluster.isAvailable)) struct TwoConnectionsTests {
  private static let long = String(repeating: "x", count: 300_000)

  /// Records of one commit, which is large enough for a second connection.
  private static func names(_ letter: String) -> [String] { (1...5).map { "\(letter)\($0)" } }

  private static func write(_ names: [String], _ run: SinkRun) throws {
    try run.write(names) { [SinkRun.parent: .text(Self.long + $0)] }
  }

  /// A run that has committed `first` and the records `a`.
  private func run(
    _ database: TestDatabase, url: String? = nil, _ prepare: (SinkRun) throws -> Void = { _ in }
  ) throws -> SinkRun {
    let run = try SinkRun(database, url: url).begin()
    try prepare(run)
    run.sink.whileWaiting = { false }
    try Self.write(Self.names("a"), run)
    try run.commit()
    return run
  }

  /// Process IDs of the server's ends of both connections, and when the transaction of the second
  /// began.
  private struct Ends {
    var first: String
    var second: String
    var beganAt: String
  }

  /// Lets the records `b` wait for a lock until all of `c` have been sent over the second connection,
  /// then calls `meanwhile` and prepares `b`.
  private func overlap(
    _ run: SinkRun, _ database: TestDatabase, meanwhile: @escaping (Ends) throws -> Void = { _ in }
  ) throws {
    try Self.write(Self.names("b"), run)
    let holder = try database.connect()
    try holder.execute("BEGIN; LOCK TABLE salesforce.opportunity IN SHARE MODE")
    var hasWritten = false
    var isOver = false
    run.sink.whileWaiting = {
      do {
        if !hasWritten {
          hasWritten = true
          try Self.write(Self.names("c"), run)
        } else if !isOver, let ends = try self.ends(run) {
          isOver = true
          try meanwhile(ends)
          try holder.execute("COMMIT")
        }
      } catch {
        Issue.record(error)
      }
      return false
    }
    try run.prepare()
    run.sink.whileWaiting = { false }
    #expect(isOver)
  }

  /// Nil until the first connection waits for the lock and all rows were given to the second. The
  /// server inserts them a thousand at a time.
  private func ends(_ run: SinkRun) throws -> Ends? {
    guard run.sink.session.spareRows?.openSentCount == 5 else { return nil }
    let found = try run.eye.rows(
      """
      SELECT w.pid, a.pid, a.xact_start FROM pg_locks AS w, pg_locks AS h, pg_stat_activity AS a \
      WHERE NOT w.granted AND w.relation = 'salesforce.opportunity'::regclass \
      AND h.granted AND h.mode = 'RowExclusiveLock' AND h.pid <> w.pid \
      AND h.relation = 'salesforce.opportunity_history'::regclass AND a.pid = h.pid
      """)
    return found.first.map { Ends(first: $0[0], second: $0[1], beganAt: $0[2]) }
  }

  private func check(_ run: SinkRun, without refused: Set<String> = []) throws {
    let names = ["first"] + ["a", "b", "c"].flatMap(Self.names)
    try run.sink.commitPatiently()
    try run.commit()
    #expect(try run.history() == names.filter { !refused.contains($0) })
    #expect(try run.current() == names.filter { !refused.contains($0) })
    #expect(try run.storedOrdinal() == "16")
    // Both connections are as good as new.
    for letter in ["d", "e"] {
      try Self.write(Self.names(letter), run)
      try run.commit()
    }
    #expect(try run.history().suffix(10) == (Self.names("d") + Self.names("e"))[...])
  }

  @Test("The next commit continues the transaction of the second connection")
  func continued() async throws {
    let database = try await TestDatabase()
    let run = try self.run(database)
    var beganAt: String?
    try self.overlap(run, database) { beganAt = $0.beganAt }
    #expect(try run.history().last == "a5")
    try self.check(run)
    let used = try run.eye.column(
      "SELECT DISTINCT _loaded_at FROM salesforce.opportunity_history WHERE _record_id LIKE 'c%'")
    #expect(used == [beganAt])
  }

  @Test(
    "A server process that ends under either connection, or both, is replaced",
    arguments: [[true, false], [false, true], [true, true]])
  func terminated(_ ended: [Bool]) async throws {
    let database = try await TestDatabase()
    let run = try self.run(database)
    try self.overlap(run, database) { ends in
      for (process, isEnded) in zip([ends.first, ends.second], ended) where isEnded {
        try run.eye.query("SELECT pg_terminate_backend($1)", [process])
        while try !run.eye.column("SELECT pid FROM pg_stat_activity WHERE pid = \(process)").isEmpty
        {}
      }
    }
    try self.check(run)
  }

  @Test("A server process that ends before or after the first COMMIT is replaced", arguments: 0...2)
  func terminatedLater(_ turn: Int) async throws {
    let database = try await TestDatabase()
    let run = try self.run(database)
    try self.overlap(run, database)
    if turn == 0 { try run.terminateBackend() }
    try run.sink.commitPatiently()
    if turn == 1 { try run.terminateBackend() }
    try run.prepare()
    if turn == 2 { try run.terminateBackend() }
    try self.check(run)
  }

  @Test("A refused row ends the second transaction, and the next commit sends its rows again")
  func refused() async throws {
    let database = try await TestDatabase()
    let run = try self.run(database)
    try run.eye.execute("ALTER TABLE salesforce.opportunity ADD CHECK (id <> 'b3')")
    try self.overlap(run, database)
    #expect(run.refused.map(\.ordinal) == [8])
    try self.check(run, without: ["b3"])
  }

  @Test("Rows of the second connection are not committed after the lease is lost")
  func fenced() async throws {
    let database = try await TestDatabase()
    let run = try self.run(database)
    try self.overlap(run, database)
    try run.sink.commitPatiently()
    let other = try SinkRun(database, place: "other /state", takesOver: true, ordinal: run.ordinal)
    try other.sink.open()
    #expect(throws: LeaseError.self) { try run.commit() }
    run.sink.close()
    #expect(try other.history().last == "b5")
  }

  @Test(
    "Tables on which the connections could wait for each other are written over one",
    arguments: [
      "CREATE UNIQUE INDEX ON salesforce.opportunity_history (_event_id, _record_id)",
      """
      CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RETURN NEW; END'; CREATE TRIGGER note BEFORE INSERT ON salesforce.opportunity_history
      FOR EACH ROW EXECUTE FUNCTION public.note()
      """,
      """
      ALTER TABLE salesforce.opportunity_history
      ADD FOREIGN KEY (_record_id) REFERENCES salesforce.opportunity DEFERRABLE INITIALLY DEFERRED
      """,
    ])
  func dependent(_ change: String) async throws {
    let run = try self.run(try await TestDatabase()) { try $0.eye.execute(change) }
    #expect(run.sink.session.spare == nil)
    for letter in ["b", "c"] {
      try Self.write(Self.names(letter), run)
      try run.prepare()
      if letter == "b" { try run.sink.commitPatiently() }
    }
    try self.check(run)
  }

  @Test("A role that may have one connection works with one")
  func limited() async throws {
    let database = try await TestDatabase()
    let role = "limited_\(database.name)"
    try database.connect().execute(
      """
      CREATE ROLE \(role) LOGIN CONNECTION LIMIT 1;
      GRANT CREATE ON DATABASE \(database.name) TO \(role)
      """)
    let run = try self.run(
      database,
      url: "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)")
    #expect(run.sink.session.spare == nil && !run.sink.session.maySpare)
    for letter in ["b", "c"] {
      try Self.write(Self.names(letter), run)
      try run.prepare()
      if letter == "b" { try run.sink.commitPatiently() }
    }
    try self.check(run)
    #expect(!run.notices.contains { $0.contains("again in") }, "\(run.notices)")
  }
}
