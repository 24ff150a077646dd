import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Tables that reports have locked", .enabled(if: PostgresCluster.isAvailable))
struct LockedTableTests {
  private static let wider = SinkRun.layout(schemaID: "schema-2", [Column("Stage", 3, .string)])

  @Test("A new column waits briefly for its lock, pauses longer, and names the session")
  func pauses() async throws {
    let database = try await TestDatabase()
    // Without a limit of its own, the change would wait until the statement's time is over.
    let run = try SinkRun(database) { $0.connection.lockTimeout = .seconds(250) }.begin()
    let report = try database.connect()
    try report.execute(
      "SET application_name = 'pg_dump'; BEGIN; SELECT * FROM salesforce.opportunity")
    let process = try report.column("SELECT pg_backend_pid()")[0]
    var retries: [(message: String, delay: Duration)] = []
    run.sink.session.onRetry = { retries.append(($0, $2)) }
    guard case .unavailable = try run.sink.makeReady(for: Self.wider) else {
      Issue.record("the column was added to a locked table")
      return
    }
    #expect(retries.count == 1)
    // Four times as long as the wait of a second.
    #expect(retries.allSatisfy { $0.delay >= .seconds(4) })
    let message = try #require(retries.first?.message)
    #expect(
      message.contains(
        "\"salesforce\".\"opportunity\" is locked by process \(process) (application pg_dump, "
          + "user postgres, idle in transaction, in its transaction since "))
    #expect(!message.contains("SELECT"))
    // Nobody queues behind a change that pauses.
    #expect(try run.eye.column("SELECT count(*) FROM salesforce.opportunity") == ["1"])
    try report.execute("COMMIT")
    guard case .done = try run.sink.makeReady(for: Self.wider) else {
      Issue.record("the column was not added")
      return
    }
  }

  @Test("A view that a report has locked is updated later in the same run")
  func dueView() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database) { $0.connection.lockTimeout = .milliseconds(1) }.begin()
    let report = try database.connect()
    // Another definition, so that the next layout makes the view again.
    try report.execute("ALTER VIEW salesforce.opportunity_live RENAME COLUMN amount TO betrag")
    try report.execute("BEGIN; SELECT * FROM salesforce.opportunity_live")
    run.notices = []
    let later = SinkRun.layout(schemaID: "schema-2")
    try run.write(["a"], layout: later) { _ in [SinkRun.amount: .double(1.5)] }
    try run.commit()
    #expect(run.notices.count == 1)
    #expect(
      run.notices.first?.contains("\"opportunity_live\" is locked by process") == true,
      "\(run.notices)")
    try report.execute("COMMIT")
    try run.sink.renewLease()
    #expect(
      try run.eye.column("SELECT amount FROM salesforce.opportunity_live WHERE id = 'a'")
        == ["1.5"])
    #expect(run.notices.count == 1)
  }
}
