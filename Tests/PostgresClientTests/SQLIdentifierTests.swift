import PostgresClient
import TestSupport
import Testing

@Suite("SQL identifiers") struct SQLIdentifierTests {
  @Test(
    "Names follow the style",
    arguments: [
      ("StageName", "stagename", "stage_name", "StageName"),
      ("BillingAddress_City", "billingaddress_city", "billing_address_city", "BillingAddress_City"),
      ("My_Field__c", "my_field__c", "my_field__c", "My_Field__c"),
      ("HTTPServerID__c", "httpserverid__c", "http_server_id__c", "HTTPServerID__c"),
      ("Q1Amount", "q1amount", "q1_amount", "Q1Amount"), ("X", "x", "x", "X"),
      ("Größe", "größe", "größe", "Größe"), ("ÄrgerÜber", "ärgerüber", "ärger_über", "ÄrgerÜber"),
      ("xmin", "xmin_", "xmin_", "xmin_"), ("Ctid", "ctid_", "ctid_", "Ctid"),
    ])
  func styles(name: String, lower: String, snake: String, asIs: String) {
    #expect(SQLIdentifier.name(name, .lower) == lower)
    #expect(SQLIdentifier.name(name, .snake) == snake)
    #expect(SQLIdentifier.name(name, .asIs) == asIs)
  }

  @Test("Names beyond 63 bytes are shortened between characters and stay distinct")
  func longNames() {
    let stem = String(repeating: "a", count: 60)
    #expect(SQLIdentifier.shortened(stem + "xyz") == stem + "xyz")
    let (first, second) = (
      SQLIdentifier.shortened(stem + "wxyz"), SQLIdentifier.shortened(stem + "wxyy")
    )
    #expect(first != second && first.utf8.count == 63 && second.utf8.count == 63)
    #expect(SQLIdentifier.shortened(stem + "wxyz") == first)
    let wide = SQLIdentifier.shortened(String(repeating: "ü", count: 40))
    #expect(wide.utf8.count <= 63 && wide.hasPrefix(String(repeating: "ü", count: 27) + "_"))
  }

  @Test(
    "The server reads quoted names and constants as the original text",
    .enabled(if: PostgresCluster.isAvailable))
  func quoting() async throws {
    let connection = try await TestDatabase().connect()
    let names = [
      "select", "User", "a\"b", "a'b", "a b", "naïve", "名前", "a\\b", "order", "\"\"", "$1", "%s",
      "e\u{301}", "\"\u{301}", "a\r\n\u{301}b",
      SQLIdentifier.shortened(String(repeating: "名", count: 50)),
    ]
    for scs in ["on", "off"] {
      try connection.execute(
        "SET standard_conforming_strings = \(scs); SET escape_string_warning = off")
      for name in names {
        let table = SQLIdentifier.quoted(name)
        try connection.execute("CREATE TABLE \(table) (\(table) int)")
        try connection.execute("COMMENT ON TABLE \(table) IS \(SQLIdentifier.literal(name))")
        let found = try connection.query(
          "SELECT attname, obj_description(attrelid) FROM pg_attribute JOIN pg_class c ON "
            + "c.oid = attrelid WHERE relname = $1 AND attnum = 1", [name])
        #expect(found.rowCount == 1 && found[0, 0] == name && found[0, 1] == name)
        try connection.execute("DROP TABLE \(table)")
      }
    }
  }
}
