import Testing

@testable import PostgresClient

@Suite("Errors of the server") struct ServerReportTests {
  private func message(_ report: ServerReport, _ sql: String = "INSERT INTO t SELECT") -> String {
    PostgresError(report, during: sql).message
  }

  @Test(
    "A message that an expression over values may have worded is not printed",
    arguments: [
      ("42P01", "relation \"c4nary\" does not exist"),
      ("42601", "syntax error in tsquery: \"c4nary\""),
      ("42883", "operator does not exist: c4nary"), ("42704", "type \"c4nary\" does not exist"),
      ("42725", "more than one function named \"c4nary\""), ("42602", "invalid name: c4nary"),
      ("3F000", "schema \"c4nary\" does not exist"),
      ("3D000", "database \"c4nary\" does not exist"),
      ("0A000", "unit \"c4nary\" not supported for type timestamp"),
      ("58P01", "could not open file \"c4nary\""), ("XX000", "unexpected c4nary"),
      ("22P02", "invalid input syntax: \"c4nary\""), ("P0001", "c4nary"), ("UX001", "c4nary"),
    ])
  func hidden(sqlState: String, primary: String) {
    let report = ServerReport(sqlState: sqlState, primary: primary)
    for sql in [
      "INSERT INTO t SELECT", "COMMIT", "SET CONSTRAINTS ALL IMMEDIATE", "CREATE INDEX ON t (a)",
      "BEGIN; SELECT 1", "CREATE TEMP TABLE a AS SELECT 1", "COPY t FROM STDIN",
    ] {
      let message = self.message(report, sql)
      #expect(!message.contains("c4nary") && message.contains(sqlState), "\(message)")
    }
  }

  @Test(
    "A message about the statement, the table or the server is printed",
    arguments: [
      "42501", "42804", "42809", "428C9", "42P10", "23505", "25006", "40P01", "53100", "54000",
    ])
  func printed(sqlState: String) {
    let report = ServerReport(sqlState: sqlState, primary: "about the table")
    #expect(self.message(report).contains("about the table"))
    #expect(!PostgresError(report, during: "INSERT").mayConcernRow)
    var missing = ServerReport(sqlState: "42P01", primary: "relation \"t\" does not exist")
    #expect(!self.message(missing).contains("relation"))
    #expect(self.message(missing, "BEGIN; ALTER TABLE t ADD COLUMN a int").contains("relation"))
    #expect(self.message(missing, "SELECT 1; CREATE TABLE \"t\" (a int)").contains("\"t\" does"))
    missing.isAboutStatement = true
    #expect(self.message(missing).contains("relation \"t\" does not exist"))
    #expect(!missing.mayConcernRow)
  }

  @Test(
    "A full disk or a damaged file below a trigger is not blamed on a row",
    arguments: ["53100", "53200", "58030", "XX001"])
  func serverFault(sqlState: String) {
    var report = ServerReport(sqlState: sqlState, primary: "could not extend file \"c4nary\"")
    report.context = "PL/pgSQL function audit() line 3 at SQL statement"
    report.sourceFile = "md.c"
    #expect(!PostgresError(report, during: "INSERT INTO t SELECT").refusesRow)
    #expect(self.message(report).contains("database server"))
    #expect(!self.message(report).contains("c4nary"))
    // A function that raises it has worded it for the row.
    report.sourceFile = "pl_exec.c"
    #expect(PostgresError(report, during: "INSERT INTO t SELECT").refusesRow)
  }

  @Test(
    "An error that one row may have caused is distinguished from one that every row would cause")
  func concernsRow() {
    var report = ServerReport(sqlState: "42P01", primary: "relation does not exist")
    #expect(report.mayConcernRow)
    // A function names a table that is missing.
    report.isAboutFunction = true
    report.context = "PL/pgSQL function audit() line 3 at SQL statement"
    #expect(!report.mayConcernRow && report.isRaised)
    report.context =
      "PL/pgSQL function audit() line 3 at EXECUTE\nPL/pgSQL function x() line 1 at IF"
    #expect(report.mayConcernRow)
    let raised = ServerReport(
      sqlState: "42501", primary: "c4nary", sourceFile: "pl_exec.c",
      context: "PL/pgSQL function refuse() line 3 at RAISE")
    #expect(raised.mayConcernRow && !self.message(raised, "ALTER TABLE t").contains("c4nary"))
    #expect(!ServerReport(sqlState: "40P01", primary: "", sourceFile: "pl_exec.c").mayConcernRow)
  }

  @Test("A limit of the server has advice, and a server before wraparound is not available")
  func limits() {
    var report = ServerReport(
      sqlState: "54000", primary: "row is too big", sourceFile: "hio.c")
    #expect(self.message(report).contains("select or drop"))
    #expect(report.disposition == .rejectedRow)
    report.sourceFile = "varsup.c"
    #expect(self.message(report).contains("VACUUM"))
    #expect(report.disposition == .retry)
    report.sourceFile = "nbtutils.c"
    #expect(!self.message(report).contains(";") && report.disposition == .rejectedRow)
    report = ServerReport(sqlState: "54011", primary: "tables can have at most 1600 columns")
    #expect(self.message(report, "ALTER TABLE t").contains("select or drop"))
    #expect(report.disposition == .configuration)
  }
}
