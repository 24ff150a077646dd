import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Descriptions next to the data")
struct ColumnCatalogTests {
  private let directory: TemporaryDirectory
  private let catalog: ColumnCatalog

  init() throws {
    self.directory = try TemporaryDirectory()
    self.catalog = ColumnCatalog(directory: self.directory.path, pipeline: "opps")
  }

  private func text(_ name: String) throws -> String {
    try String(contentsOfFile: "\(self.directory.path)/\(name)", encoding: .utf8)
  }

  private func layout(_ schemaID: String, _ columns: [Column]) -> RecordLayout {
    RecordLayout(
      topic: "/data/OpportunityChangeEvent", schemaID: schemaID, entity: "Opportunity",
      family: .changeEvent, slotCount: 100, fieldOrder: Array(0..<100),
      columns: [
        Column(
          name: "_topic", path: ["_topic"], content: .constant("/data/OpportunityChangeEvent"),
          isMetadata: true)
      ] + columns)
  }

  @Test("The next run corrects the path in the views of files that were moved")
  func moved() throws {
    let home = "\(self.directory.path)/new"
    try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: false)
    func run() throws {
      let sink = FileSink(
        FileSinkConfiguration(name: "files", directory: home, pipeline: "opps", org: "00D"))
      try sink.recover(from: nil)
    }
    try run()
    #expect(!FileManager.default.fileExists(atPath: "\(home)/_views.sql"))
    let old = "\(self.directory.path)/old"
    try ColumnCatalog(directory: old, pipeline: "opps").add(
      self.layout("s1", [Column("Name", 16, .string)]), entityDirectory: "Opportunity")
    try FileManager.default.removeItem(atPath: home)
    try FileManager.default.moveItem(atPath: old, toPath: home)
    #expect(try self.text("new/_views.sql").contains("\(old)/"))
    try run()
    let views = try self.text("new/_views.sql")
    #expect(views.contains("'\(home)/") && !views.contains("\(old)/"))
  }

  @Test("The catalog lists columns with name, type, Salesforce type and first schema")
  func columns() throws {
    try self.catalog.add(
      self.layout(
        "s1",
        [
          Column("Name", 16, .string, salesforceType: "Data:Text"),
          Column("Amount", 17, .double, salesforceType: "Data:Currency"),
          Column("Rate \"x\"", 18, .decimal(precision: 10, scale: 2)),
          Column("Addr", 19, children: [("City", 20, .string)]),
        ]), entityDirectory: "Opportunity")
    #expect(
      try self.text("Opportunity/_columns.json") == """
        {
          "entity": "Opportunity",
          "pipelines": ["opps"],
          "columns": [
            {"name":"_topic","type":"string","first_schema_id":"s1"},
            {"name":"Name","type":"string","salesforce_type":"Data:Text","first_schema_id":"s1"},
            {"name":"Amount","type":"double","salesforce_type":"Data:Currency","first_schema_id":"s1"},
            {"name":"Rate \\"x\\"","type":"decimal(10,2)","first_schema_id":"s1"},
            {"name":"Addr","type":"record","first_schema_id":"s1"}
          ]
        }

        """)
  }

  @Test("A later schema adds its columns in place, and entries of other runs stay")
  func merges() throws {
    let entityDirectory = "Opportunity"
    try self.catalog.add(
      self.layout("s1", [Column("A", 16, .int32), Column("C", 17, .string)]),
      entityDirectory: entityDirectory)
    let second = ColumnCatalog(directory: self.directory.path, pipeline: "opps")
    try second.add(
      self.layout(
        "s2", [Column("A", 16, .int32), Column("B", 17, .string), Column("C", 18, .double)]),
      entityDirectory: entityDirectory)
    let columns = try #require(
      EntityColumns(parsing: Array(try self.text("Opportunity/_columns.json").utf8)))
    #expect(columns.entries.map(\.name) == ["_topic", "A", "B", "C", "C"])
    #expect(columns.entries.map(\.type) == ["string", "int", "string", "string", "double"])
    #expect(columns.entries.map(\.firstSchemaID) == ["s1", "s1", "s2", "s1", "s2"])
    // A text and a number in one column are both texts to the view.
    #expect(try self.text("_views.sql").contains("'C': 'VARCHAR'"))
  }

  @Test("An unchanged catalog is not rewritten, and no temporary file remains")
  func unchanged() throws {
    let layout = self.layout("s1", [Column("A", 16, .int32)])
    let path = "\(self.directory.path)/Opportunity/_columns.json"
    try self.catalog.add(layout, entityDirectory: "Opportunity")
    func inode(_ path: String) throws -> Int {
      try #require(
        FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
    }
    let files = [path, "\(self.directory.path)/_views.sql"]
    let before = try files.map(inode)
    try self.catalog.add(layout, entityDirectory: "Opportunity")
    #expect(try files.map(inode) == before)
    try self.catalog.add(
      self.layout("s2", [Column("B", 16, .int32)]), entityDirectory: "Opportunity")
    #expect(try zip(files.map(inode), before).allSatisfy { $0 != $1 })
    let names = try FileManager.default.subpathsOfDirectory(atPath: self.directory.path).sorted()
    #expect(
      names == [
        ".catalog.lock", ".pportunity", ".pportunity/commit_date=1970-01-01",
        ".pportunity/commit_date=1970-01-01/.none.ndjson.zst", "Opportunity",
        "Opportunity/_columns.json", "_fields.ndjson", "_freshness.ndjson", "_picklist.ndjson",
        "_views.sql",
      ])
  }

  @Test("A damaged catalog is rebuilt", arguments: ["", "{", "[]", "{\"a\":1}"])
  func damaged(content: String) throws {
    let layout = self.layout("s1", [Column("A", 16, .int32)])
    try self.catalog.add(layout, entityDirectory: "Opportunity")
    let good = try self.text("Opportunity/_columns.json")
    try content.write(
      toFile: "\(self.directory.path)/Opportunity/_columns.json", atomically: false,
      encoding: .utf8)
    try self.catalog.add(layout, entityDirectory: "Opportunity")
    #expect(try self.text("Opportunity/_columns.json") == good)
  }

  private static let fileName = "opps-OpportunityChangeEvent-e2-000000000042.ndjson.zst"

  @Test("DuckDB runs the views and gives every column its type")
  func duckDB() throws {
    let types: [(ColumnType, TestCell, type: String, value: String)] = [
      (.boolean, .integer(1), "BOOLEAN", "true"),
      (.int32, .integer(-5), "INTEGER", "-5"),
      (.int64, .integer(.max), "BIGINT", "9223372036854775807"),
      (.float, .float(0.5), "FLOAT", "0.5"),
      (.double, .double(100), "DOUBLE", "100.0"),
      (.string, .text("it's \"ü\""), "VARCHAR", "it's \"ü\""),
      (.enumeration(["A"]), .integer(0), "VARCHAR", "A"),
      (.bytes, .bytes([0xFF, 0x41]), "BLOB", "\\xFFA"),
      (.decimal(precision: 10, scale: 2), .bytes([0x04, 0xD2]), "DECIMAL(10,2)", "12.34"),
      (.decimal(precision: 60, scale: 2), .bytes([0x04, 0xD2]), "VARCHAR", "12.34"),
      (
        .uuid, .text("b2f1cf6a-7c43-4c5e-bd0a-b9a5d0e6f7c1"), "UUID",
        "b2f1cf6a-7c43-4c5e-bd0a-b9a5d0e6f7c1"
      ),
      (.date(.days), .integer(0), "DATE", "1970-01-01"),
      (.date(.milliseconds), .integer(0), "DATE", "1970-01-01"),
      (.time(.milliseconds), .integer(1), "TIME", "00:00:00.001"),
      (.time(.microseconds), .integer(1), "TIME", "00:00:00.000001"),
      (
        .timestamp(.milliseconds, isLocal: false), .integer(1_771_300_995_000),
        "TIMESTAMP WITH TIME ZONE", "2026-02-17 04:03:15+00"
      ),
      (
        .timestamp(.microseconds, isLocal: false), .integer(1), "TIMESTAMP WITH TIME ZONE",
        "1970-01-01 00:00:00.000001+00"
      ),
      (
        .timestamp(.milliseconds, isLocal: true), .integer(1), "TIMESTAMP",
        "1970-01-01 00:00:00.001"
      ),
      (
        .timestamp(.nanoseconds, isLocal: true), .integer(1), "TIMESTAMP_NS",
        "1970-01-01 00:00:00.000000001"
      ),
      (
        .duration, .bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
        "STRUCT(\"months\" UINTEGER, \"days\" UINTEGER, \"milliseconds\" UINTEGER)",
        "{'months': 1, 'days': 2, 'milliseconds': 3}"
      ),
      (.stringList, .text(#"["a","b"]"#), "VARCHAR[]", "[a, b]"),
      (.json, .text(#"{"x":[1]}"#), "JSON", #"{"x":[1]}"#),
    ]
    var columns = types.enumerated().map { Column("c\($0.offset) \"'", $0.offset, $0.element.0) }
    columns.append(
      Column("Name", 50, scalar: .init(slot: 51, type: .string), children: [("First", 52, .string)])
    )
    let layout = self.layout("s1", columns)
    let batch = RecordBatch(layout: layout)
    var cells = Dictionary(
      uniqueKeysWithValues: types.enumerated().map { ($0.offset, $0.element.1) })
    cells[50] = .record
    cells[52] = .text("Ada")
    batch.addRow(cells)
    batch.addRow([50: .record, 51: .text("Acme")])
    for options in [NDJSONFormat(), NDJSONFormat(int64AsStrings: true)] {
      try self.catalog.add(layout, entityDirectory: "Opportunity")
      try ViewFiles.finish(
        batch.lines(options), as: Self.fileName,
        in: "\(self.directory.path)/Opportunity/commit_date=2026-02-17")

      let lines = try PythonScript.run("query_views.py", [self.directory.path, "Opportunity"])
        .split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
      let described = (lines[0].array ?? []).map { $0.array?.last?.string ?? "" }
      #expect(
        described == ["VARCHAR"] + types.map(\.type) + [
          "JSON", "BIGINT", "BIGINT", "JSON", "VARCHAR", "DATE", "BIGINT", "BIGINT", "VARCHAR",
        ])
      let rows = lines.dropFirst().map { ($0.array ?? []).map { $0.string } }
      #expect(rows.count == 2)
      #expect(
        rows.contains(
          ["/data/OpportunityChangeEvent"] + types.map(\.value) + [
            #"{"First":"Ada"}"#, "2", nil, nil,
            "\(self.directory.path)/Opportunity/commit_date=2026-02-17/\(Self.fileName)",
            "2026-02-17", "2", "42", "opps",
          ]))
      #expect(rows.contains { $0.contains("\"Acme\"") })
    }
  }
}
