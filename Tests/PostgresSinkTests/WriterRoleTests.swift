import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// What a role that owns nothing meets in a schema that its owner has set up.
struct WriterRole: CustomTestStringConvertible, Sendable {
  var name: String
  /// Executed by the owner.
  var sql: String
  /// What the run is refused with; nil when it goes on.
  var message: String?

  var testDescription: String { self.name }

  static let all: [Self] = [
    Self(name: "rights on rows only", sql: ""),
    Self(
      name: "tables of an earlier version",
      sql: "DELETE FROM salesforce._etl_journal WHERE action = 'feed'"),
    Self(
      name: "tables of an earlier version, and no right to note their feed",
      sql: """
        DELETE FROM salesforce._etl_journal WHERE action = 'feed';
        REVOKE INSERT ON salesforce._etl_journal FROM :role
        """),
    Self(
      name: "row-level security on the current table",
      sql: """
        ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce.opportunity TO :role USING (true)
        """),
    Self(
      name: "row-level security that hides all rows of the current table",
      sql: "ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY",
      message: "\"salesforce\".\"opportunity\" has row-level security, which may hide rows"),
    Self(
      name: "row-level security that hides some rows of the current table",
      sql: """
        ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce.opportunity TO :role USING (name <> 'first')
        WITH CHECK (true)
        """, message: "\"salesforce\".\"opportunity\" has row-level security, which may hide rows"),
    Self(
      name: "a restrictive policy on the current table",
      sql: """
        ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce.opportunity TO :role USING (true);
        CREATE POLICY less ON salesforce.opportunity AS RESTRICTIVE USING (amount > 0)
        """, message: "\"salesforce\".\"opportunity\" has row-level security, which may hide rows"),
    Self(
      name: "row-level security that hides the bookkeeping",
      sql: """
        ALTER TABLE salesforce._etl_resync ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce._etl_resync FOR INSERT TO :role WITH CHECK (true)
        """, message: "\"salesforce\".\"_etl_resync\" has row-level security, which may hide"),
    Self(
      name: "row-level security on the bookkeeping",
      sql: """
        ALTER TABLE salesforce._etl_checkpoint ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce._etl_checkpoint TO :role USING (true)
        """),
    Self(
      name: "row-level security on the history",
      sql: """
        ALTER TABLE salesforce.opportunity_history ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON salesforce.opportunity_history TO :role USING (true)
        """, message: "has row-level security"),
    Self(
      name: "rights on columns",
      sql: """
        REVOKE INSERT ON salesforce.opportunity_history FROM :role;
        GRANT INSERT (_epoch, _ordinal, _topic, _replay_id, _event_id, _schema_id, _kind, _entity,
        _change_type, _record_id, _commit_timestamp, _commit_number, _commit_user,
        _transaction_key, _sequence_number, _change_origin, _changed_fields, _nulled_fields,
        _diff_fields, name, parent, amount) ON salesforce.opportunity_history TO :role
        """),
    Self(
      name: "views and columns of the owner's",
      sql: """
        CREATE VIEW public.names AS SELECT name FROM salesforce.opportunity_live;
        ALTER TABLE salesforce.opportunity ADD COLUMN note text
        """),
    Self(
      name: "a view that is gone, and no right to make it",
      sql: "DROP VIEW salesforce.opportunity_live"),
  ]
}

@Suite("Roles that may only write rows", .enabled(if: PostgresCluster.isAvailable))
struct WriterRoleTests {
  @Test(
    "A role that may only write rows can continue a run wherever rows can be written",
    arguments: WriterRole.all)
  func goesOn(_ setup: WriterRole) async throws {
    let database = try await TestDatabase()
    let owner = try SinkRun(database).begin()
    owner.sink.close()
    let role = "writer_\(database.name)"
    try owner.eye.execute(
      """
      CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA salesforce TO \(role);
      GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO \(role);
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA salesforce TO \(role);
      GRANT INSERT ON salesforce.opportunity_history, salesforce._etl_journal TO \(role);
      GRANT INSERT, UPDATE ON salesforce.opportunity, salesforce._etl_checkpoint,
      salesforce._etl_resync TO \(role)
      """)
    for statement in setup.sql.split(separator: ":role", omittingEmptySubsequences: false)
      .joined(separator: role).split(separator: ";")
    {
      try owner.eye.execute(String(statement))
    }
    let url = "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"
    let run = try SinkRun(database, ordinal: 1, url: url)
    // So many that they would go straight into the current table.
    let names = (0..<40).map { "r\($0)" }
    let error = postgresError {
      try run.sink.open(isKnown: true)
      try run.write(names)
      try run.write(["first"], type: "UPDATE")
      try run.commit()
    }
    if let message = setup.message {
      #expect(error?.disposition == .configuration)
      #expect(error?.message.contains(message) == true, "\(String(describing: error))")
      #expect(try run.history() == ["first"])
      return
    }
    #expect(error == nil, "\(String(describing: error)) \(run.notices)")
    #expect(try run.history() == ["first"] + names + ["first"])
    #expect(try run.current() == names + ["first"])
    #expect(try run.refused.isEmpty && run.noted().isEmpty)
  }

  @Test("A table created beforehand with NOT NULL fields is accepted")
  func madeBeforehand() async throws {
    let database = try await TestDatabase()
    let owner = try SinkRun(database).begin()
    try owner.eye.execute(
      """
      CREATE SCHEMA made;
      CREATE TABLE made.opportunity_history (LIKE salesforce.opportunity_history INCLUDING ALL);
      ALTER TABLE made.opportunity_history ALTER COLUMN name SET NOT NULL
      """)
    let run = try SinkRun(database) {
      $0.schema = "made"
      $0.mode = .history
    }
    try run.sink.open(creating: [:])
    try run.write(["a"])
    try run.commit()
    #expect(try run.eye.column("SELECT name FROM made.opportunity_history") == ["a"])
  }
}
