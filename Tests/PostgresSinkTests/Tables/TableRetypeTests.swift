import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// A column that gets another type while a run is going on, whose rows have been encoded for the old.
struct Retype: CustomTestStringConvertible, Sendable {
  var sql: String
  /// Nil where the values have the same form in both types.
  var message: String?

  var testDescription: String { self.sql }

  init(_ table: String, _ column: String, _ type: String, _ message: String?) {
    self.sql = "ALTER TABLE salesforce.\(table) ALTER COLUMN \(column) TYPE \(type)"
    self.message = message
  }

  static let all: [Self] = [
    Self("opportunity_history", "_ordinal", "numeric", "column _ordinal was changed to"),
    Self("opportunity_history", "_ordinal", "text", "column _ordinal was changed to"),
    Self(
      "opportunity_history", "_ordinal", "double precision", "column _ordinal was changed to"),
    Self(
      "opportunity_history", "_commit_timestamp", "bigint USING 0",
      "column _commit_timestamp was changed to bigint"),
    Self("opportunity_history", "amount", "bigint", "\"amount\" of"),
    Self("opportunity_history", "amount", "real", "\"amount\" of"),
    Self("opportunity_history", "amount", "numeric", "\"amount\" of"),
    Self("opportunity_history", "name", "bytea USING name::bytea", "\"name\" of"),
    Self("opportunity_history", "name", "varchar(20)", nil),
    Self("opportunity", "_ordinal", "numeric", "column _ordinal was changed to"),
    Self("opportunity", "amount", "bigint", "\"amount\" of"),
    Self("opportunity", "name", "bytea USING name::bytea", "\"name\" of"),
    Self("opportunity", "name", "varchar(20)", nil),
  ]
}

@Suite(
  "Columns that change their type during a run", .enabled(if: PostgresCluster.isAvailable)
)
struct TableRetypeTests {
  @Test(
    "A column whose type changes during a run ends it, is named, and nothing is stored",
    arguments: Retype.all, [1, 2])
  func retyped(_ retype: Retype, epoch: Int) async throws {
    let run = try SinkRun(try await TestDatabase(), epoch: epoch).begin()
    let layout = SinkRun.layout()
    // So many that they go straight into the current table as well.
    let names = (0..<40).map { "r\($0)" }
    let amounts = { (_: String) in [SinkRun.amount: TestCell.double(0)] }
    try run.write(["a"], layout: layout, amounts)
    try run.commit()
    // No type can be changed below a view.
    try run.eye.execute(
      """
      DROP VIEW salesforce.opportunity_live, salesforce.opportunity_changes, \
      salesforce.opportunity_versions; \(retype.sql)
      """)
    try run.write(names, layout: layout, amounts)
    let error = postgresError { try run.commit() }
    guard let message = retype.message else {
      #expect(error == nil)
      #expect(try run.history() == ["first", "a"] + names)
      #expect(try run.current() == ["first", "a"] + names)
      // Seen again, with text in one of the tables only.
      try run.write(["b"])
      #expect(postgresError { try run.commit() } == nil)
      return
    }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains(message) == true, "\(String(describing: error))")
    #expect(try run.eye.column("SELECT count(*) FROM salesforce.opportunity_history") == ["2"])
    #expect(try run.eye.column("SELECT count(*) FROM salesforce.opportunity") == ["2"])
    #expect(try run.storedOrdinal() == "2")
    #expect(try run.refused.isEmpty && run.noted().isEmpty)
  }

  @Test("Columns of fields that no schema has anymore may differ between the tables")
  func unused() async throws {
    let run = try SinkRun(try await TestDatabase())
    try run.sink.open(creating: [:])
    let wider = SinkRun.layout(schemaID: "schema-0", [Column("Old__c", 3, .double)])
    try run.write(["a"], layout: wider) { _ in [SinkRun.amount + 1: .double(2.5)] }
    try run.commit()
    try run.eye.execute(
      """
      DROP VIEW salesforce.opportunity_live;
      ALTER TABLE salesforce.opportunity ALTER COLUMN old__c TYPE numeric
      """)
    let names = (0..<40).map { "r\($0)" }
    try run.write(names + ["a"])
    try run.commit()
    #expect(try run.history() == ["a"] + names + ["a"])
    #expect(try run.current() == names + ["a"])
  }
}
