import Testing

@testable import PostgresClient

@Suite("Messages about connections")
struct ConnectionMessageTests {
  @Test("Text that a server adds to its primary message is omitted")
  func primaryMessage() {
    let said = """
      connection to server at "h" (10.0.0.1), port 5432 failed: FATAL:  28000: no entry for host
      DETAIL:  row (id, email) = (1, c4nary@example)
      second line with c4nary
      HINT:  ask c4nary
      LOCATION:  ClientAuthentication, auth.c:500
      connection to server at "h2" (10.0.0.2), port 5432 failed: Connection refused
      \tIs the server running on that host and accepting TCP/IP connections?
      """
    #expect(
      PostgresConnection.primary(said, without: "")
        == "connection to server at \"h\" (10.0.0.1), port 5432 failed: FATAL:  28000: no entry for "
        + "host; connection to server at \"h2\" (10.0.0.2), port 5432 failed: Connection refused; "
        + "Is the server running on that host and accepting TCP/IP connections?")
  }

  @Test(
    "The column of a COPY context is kept, and never the value after it",
    arguments: [
      ("COPY opportunity, line 3, column amount", "amount"),
      ("COPY opportunity, line 3, column amount: \"c4nary\"", "amount"),
      ("COPY opportunity, line 3: \"x, column c4nary\"", nil),
      ("SQL statement \"SELECT 1, column c4nary\"", nil), ("", nil),
      ("COPY opportunity, line 3, column amount\nCOPY x, line 1, column c4nary", "amount"),
    ] as [(String, String?)])
  func copyColumn(context: String, column: String?) {
    #expect(PostgresError.copyColumn(context: context) == column)
  }

  @Test("The password is removed from messages, wherever it came from")
  func password() {
    #expect(
      PostgresConnection.primary("FATAL:  28P01: wrong password c4nary!", without: "c4nary")
        == "FATAL:  28P01: wrong password <redacted>!")
    #expect(PostgresConnection.primary("FATAL: a", without: "a") == "FATAL: a")
  }
}
