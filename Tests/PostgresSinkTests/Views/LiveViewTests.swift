import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Live views", .enabled(if: PostgresCluster.isAvailable)) struct LiveViewTests {
  /// A field, with its SQL name and the values of the rows.
  struct Field: Sendable {
    var path: String
    var name: String
    var type = PostgresType.text
    var values: [String?]
  }

  struct People: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var fields: [Field]
    var style = SQLIdentifier.Style.lower
    /// Nil when the view has none.
    var names: [String?]?
    /// The view's columns between `id` and `_epoch`.
    var columns: [String]
  }

  private static let people: [People] = [
    People(
      testDescription: "all parts, the salutation left out",
      fields: [
        Field(path: "Title", name: "title", values: ["CTO"]),
        Field(path: "Name.Salutation", name: "name_salutation", values: ["Ms."]),
        Field(path: "Name.FirstName", name: "name_firstname", values: ["Anna"]),
        Field(path: "Name.LastName", name: "name_lastname", values: ["O'Hara"]),
        Field(path: "Name.MiddleName", name: "name_middlename", values: ["M."]),
        Field(path: "Name.InformalName", name: "name_informalname", values: ["Annie"]),
        Field(path: "Name.Suffix", name: "name_suffix", values: ["Jr."]),
      ], names: ["Anna M. O'Hara Jr."],
      columns: [
        "title", "name_salutation", "name", "name_firstname", "name_lastname", "name_middlename",
        "name_informalname", "name_suffix",
      ]),
    People(
      testDescription: "parts that are missing or empty",
      fields: [
        Field(path: "Name.FirstName", name: "firstname", values: ["", nil, "Bo", nil]),
        Field(path: "Name.LastName", name: "lastname", values: ["Li", "Li", nil, nil]),
      ], names: ["Li", "Li", "Bo", nil], columns: ["name", "firstname", "lastname"]),
    People(
      testDescription: "accounts of which some are people",
      fields: [
        Field(path: "Name", name: "name", values: ["Acme", nil, nil]),
        Field(path: "Name.LastName", name: "name_lastname", values: [nil, "Li", nil]),
        Field(path: "Name.FirstName", name: "name_firstname", values: [nil, "Bo", nil]),
      ], names: ["Acme", "Bo Li", nil], columns: ["name", "name_lastname", "name_firstname"]),
    People(
      testDescription: "names that are quoted",
      fields: [
        Field(path: "Name.FirstName", name: "First \"Name\"", values: ["Bo"]),
        Field(path: "Name.LastName", name: "Name_LastName", values: ["Li"]),
      ], style: .asIs, names: ["Bo Li"], columns: ["Name", "First \"Name\"", "Name_LastName"]),
    People(
      testDescription: "something else is called name",
      fields: [
        Field(path: "Label__c", name: "name", values: ["x"]),
        Field(path: "Name.LastName", name: "lastname", values: ["Li"]),
      ], names: ["x"], columns: ["name", "lastname"]),
    People(
      testDescription: "names that are one JSON column",
      fields: [Field(path: "Name", name: "name", type: .jsonb, values: [#"{"LastName": "Li"}"#])],
      names: [#"{"LastName": "Li"}"#], columns: ["name"]),
    People(
      testDescription: "a plain name",
      fields: [Field(path: "Name", name: "name", values: ["Acme"])], names: ["Acme"],
      columns: ["name"]),
    People(
      testDescription: "the last name dropped by a stage",
      fields: [Field(path: "Name.FirstName", name: "firstname", values: ["Bo"])],
      columns: ["firstname"]),
  ]

  @Test(
    "Full names of people are composed, and fields come before bookkeeping columns",
    arguments: people)
  func fullNames(_ people: People) async throws {
    let connection = try await TestDatabase().connect()
    let table = TableDefinition(
      kind: .current, entity: "Contact", schema: "public", name: "contact",
      dataColumns: people.fields.map { TableColumn(name: $0.name, type: $0.type, path: $0.path) })
    let fixed = TableDefinition.fixedColumns(.current).map(\.definition)
    let fields = table.dataColumns.map { "\($0.quotedName) \($0.type.sqlName)" }
    try connection.execute(
      "CREATE TABLE contact (\((fixed + fields).joined(separator: ", ")))")
    for row in people.fields[0].values.indices {
      let values = people.fields.map { $0.values[row].map { SQLIdentifier.literal($0) } ?? "NULL" }
      try connection.execute(
        """
        INSERT INTO contact (id, _epoch, _ordinal, \
        \(table.dataColumns.map(\.quotedName).joined(separator: ", "))) \
        VALUES ('\(row)', 1, 1, \(values.joined(separator: ", ")))
        """)
    }
    let views = ReportingViews(schema: "public", columns: people.style)
    #expect(try views.updateLive(table, over: connection) == .created)
    #expect(try views.updateLive(table, over: connection) == .unchanged)
    #expect(try self.columns(connection) == ["id"] + people.columns + Self.bookkeeping)
    guard let names = people.names else { return }
    let name = SQLIdentifier.quoted(SQLIdentifier.name("Name", people.style))
    #expect(
      try connection.column("SELECT \(name) FROM contact_live ORDER BY id")
        == names.map { $0 ?? "-" })
  }

  @Test("Columns whose type a user narrowed are shown unchanged, and the view stays")
  func narrowed() async throws {
    let connection = try await TestDatabase().connect()
    let table = TableDefinition(
      kind: .current, entity: "Contact", schema: "public", name: "contact",
      dataColumns: [
        TableColumn(name: "name", type: .text, path: "Name"),
        TableColumn(name: "name_lastname", type: .text, path: "Name.LastName"),
        TableColumn(name: "amount", type: .numeric, path: "Amount"),
        TableColumn(name: "tags", type: .textArray, path: "Tags"),
      ])
    let fixed = TableDefinition.fixedColumns(.current).map(\.definition)
    let narrow = [
      "name varchar(80)", "name_lastname varchar(40)", "amount numeric(18,2)", "tags varchar(9)[]",
    ]
    try connection.execute("CREATE TABLE contact (\((fixed + narrow).joined(separator: ", ")))")
    let views = ReportingViews(schema: "public")
    #expect(try views.updateLive(table, over: connection) == .created)
    try connection.execute("GRANT SELECT ON contact_live TO PUBLIC; BEGIN")
    #expect(try views.updateLive(table, over: connection) == .unchanged)
    let plan = try views.plan([table], hasBookkeeping: false, over: connection)
    #expect(!plan.contains { $0.contains("contact_live") })
    try connection.execute("COMMIT")
    #expect(
      try connection.column(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
          + "WHERE attrelid = 'contact_live'::regclass AND attnum BETWEEN 2 AND 5 ORDER BY attnum")
        == ["text", "character varying(40)", "numeric(18,2)", "character varying(9)[]"])
  }

  private static let bookkeeping = TableDefinition.fixedColumns(.current).map(\.name)
    .filter { !["id", "_deleted_at"].contains($0) }

  private func columns(_ connection: PostgresConnection) throws -> [String] {
    try connection.column(
      "SELECT attname FROM pg_attribute WHERE attrelid = 'contact_live'::regclass ORDER BY attnum")
  }

  @Test("A view with readers keeps its column order, and full names and new fields follow")
  func existing() async throws {
    let connection = try await TestDatabase().connect()
    var table = TableDefinition(
      kind: .current, entity: "Contact", schema: "public", name: "contact",
      dataColumns: ["FirstName", "LastName"].map {
        TableColumn(name: $0.lowercased(), type: .text, path: "Name.\($0)")
      })
    let fixed = TableDefinition.fixedColumns(.current)
    let shown = (["id"] + Self.bookkeeping + ["firstname", "lastname"])
    // As version 0.1 made them.
    try connection.execute(
      """
      CREATE TABLE contact (\(fixed.map(\.definition).joined(separator: ", ")), \
      firstname text, lastname text); \
      CREATE VIEW contact_live AS SELECT \(shown.joined(separator: ", ")) FROM contact \
      WHERE _deleted_at IS NULL; CREATE VIEW mine AS SELECT * FROM contact_live; \
      INSERT INTO contact (id, _epoch, _ordinal, firstname, lastname) VALUES ('1', 1, 1, 'Bo', 'Li')
      """)
    let views = ReportingViews(schema: "public")
    #expect(try views.updateLive(table, over: connection) == .replaced)
    #expect(try self.columns(connection) == shown + ["name"])
    #expect(try connection.column("SELECT name FROM contact_live") == ["Bo Li"])
    try connection.execute("ALTER TABLE contact ADD COLUMN email text")
    table.dataColumns.append(TableColumn(name: "email", type: .text, path: "Email"))
    #expect(try views.updateLive(table, over: connection) == .replaced)
    #expect(try self.columns(connection) == shown + ["name", "email"])
    // The organization begins to send plain names.
    try connection.execute(
      "ALTER TABLE contact ADD COLUMN name text; UPDATE contact SET name = 'Robert Li'")
    table.dataColumns.append(TableColumn(name: "name", type: .text, path: "Name"))
    #expect(try views.updateLive(table, over: connection) == .unchanged)
    #expect(try connection.column("SELECT name FROM contact_live") == ["Robert Li"])
    #expect(try connection.column("SELECT lastname FROM mine") == ["Li"])
  }
}
