import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// `_views.sql`, executed by DuckDB where the question is what it makes of it.
@Suite("DuckDB views")
struct DuckDBViewsTests {
  private let directory: TemporaryDirectory

  init() throws { self.directory = try TemporaryDirectory() }

  private func layout(_ columns: [Column], entity: String = "Opportunity") -> RecordLayout {
    RecordLayout(
      topic: "/data/OpportunityChangeEvent", schemaID: "s1", entity: entity,
      family: .changeEvent, slotCount: 100, fieldOrder: Array(0..<100), columns: columns)
  }

  /// Makes the catalogue and one file in a directory.
  private func write(
    _ directory: String, columns: [String],
    fileName: String = "opps-OpportunityChangeEvent-e2-000000000042.ndjson.zst"
  ) throws {
    let layout = self.layout(
      columns.enumerated().map { Column($0.element, 16 + $0.offset, .string) })
    let batch = RecordBatch(layout: layout)
    batch.addRow(
      Dictionary(
        uniqueKeysWithValues: columns.indices.map { (16 + $0, TestCell.text("value \($0)")) }))
    try ColumnCatalog(directory: directory, pipeline: "opps").add(
      layout, entityDirectory: "Opportunity")
    try ViewFiles.finish(
      batch.lines(NDJSONFormat()), as: fileName,
      in: "\(directory)/Opportunity/commit_date=2026-02-17")
  }

  /// The same, and what the view gives.
  private func rows(
    _ directory: String, columns: [String],
    fileName: String = "opps-OpportunityChangeEvent-e2-000000000042.ndjson.zst"
  ) throws -> (names: [String], rows: [[String?]]) {
    try self.write(directory, columns: columns, fileName: fileName)
    return try ViewFiles.query("Opportunity", of: directory)
  }

  @Test(
    "A directory is one path, whatever characters its name contains",
    arguments: [
      "it's", "it'\u{301}s", "a\"\u{308}b", "st*ar", "wh?t", "br[ac]ket", "br[ac", "clo]se",
      "{a,b}",
      "sp ace", "u\u{308}", "semi;colon", "--dashes", "$dollar", "new\nline",
    ])
  func directories(name: String) throws {
    // What the name would match as a pattern, or mean unquoted, must not be read.
    for other in ["star", "sttar", "what", "bra", "brac", "its"] where other != name {
      try self.write("\(self.directory.path)/\(other)", columns: ["Other"])
    }
    let (names, rows) = try self.rows("\(self.directory.path)/\(name)", columns: ["Name"])
    #expect(
      names == [
        "Name", "_epoch", "_ordinal", "_nonfinite", "_file", "commit_date", "_file_epoch",
        "_first_ordinal", "_pipeline",
      ])
    #expect(rows.count == 1)
    #expect(rows.first?.first == "value 0")
    #expect(rows.first?.suffix(4) == ["2026-02-17", "2", "42", "opps"])
    #expect(rows.first?[1...2] == ["2", nil])
  }

  @Test("A directory named name=value adds no column")
  func hiveDirectory() throws {
    let (names, rows) = try self.rows("\(self.directory.path)/Name=z/year=9", columns: ["Name"])
    #expect(
      names == [
        "Name", "_epoch", "_ordinal", "_nonfinite", "_file", "export_date", "_file_epoch",
        "_first_ordinal", "_pipeline",
      ])
    #expect(rows.first?.first == "value 0")
    #expect(rows.first?.suffix(4) == ["2026-02-17", "2", "42", "opps"])
    #expect(rows.first?[1...2] == ["2", nil])
  }

  @Test("A directory that DuckDB cannot name gets no views")
  func backslash() throws {
    let directory = "\(self.directory.path)/back\\slash"
    try ColumnCatalog(directory: directory, pipeline: "opps").add(
      self.layout([Column("Name", 16, .string)]), entityDirectory: "Opportunity")
    let text = try String(contentsOfFile: "\(directory)/_views.sql", encoding: .utf8)
    #expect(!text.contains("CREATE OR REPLACE"))
    #expect(text.contains("DuckDB takes the backslash in the name of this directory"))
  }

  @Test("Columns keep their names, whatever characters they contain")
  func columns() throws {
    let columns = [
      "it's", "it'\u{301}s", "say \"x\"", "say \"\u{308}x\u{308}\"", "'\u{301}; DROP VIEW x; --",
      "\u{C9}", "\u{E9}", "back\\slash", "new\nline", "{'a': 1}", "%s", "\u{200D}'\u{200D}",
    ]
    let (names, rows) = try self.rows(self.directory.path, columns: columns)
    #expect(names.prefix(columns.count).map { Array($0.utf8) } == columns.map { Array($0.utf8) })
    #expect(rows.count == 1)
    #expect(
      rows.first?.prefix(columns.count).compactMap { $0 } == columns.indices.map { "value \($0)" })
  }

  @Test(
    "Epoch, first event and pipeline are read from file names of every version",
    arguments: [
      ("opps-OpportunityChangeEvent-e1-000000000042", ["1", "42", "opps"]),
      ("opps-2-OpportunityChangeEvent-e10-000000000042", ["10", "42", "opps-2"]),
      ("a.b-e1-2-X__chn.event-ea10-1000000000042", ["10", "1000000000042", "a.b-e1-2"]),
      ("opps-X-ee100000-000000000000", ["100000", "0", "opps"]),
      ("opps-X-ea10-000000000042-s1-r1-000000000000", ["10", "42", "opps"]),
      ("a-e1-2-X-e1-000000000042-sa12-ra10-000000001000", ["1", "42", "a-e1-2"]),
    ])
  func places(stem: String, place: [String]) throws {
    let (_, rows) = try self.rows(
      self.directory.path, columns: ["Name"], fileName: "\(stem).ndjson.zst")
    #expect(rows.first?.suffix(3).compactMap { $0 } == place)
  }

  @Test("An entity that two pipelines export has a view for each and one for both")
  func twoPipelines() throws {
    let columns = ["Name"]
    try self.write(self.directory.path, columns: columns)
    try ColumnCatalog(directory: self.directory.path, pipeline: "opps-2").add(
      self.layout([Column("Name", 16, .string)]), entityDirectory: "Opportunity")
    try self.write(
      self.directory.path, columns: columns,
      fileName: "opps-2-OpportunityChangeEvent-e1-000000000007.ndjson.zst")
    #expect(try ViewFiles.query("Opportunity", of: self.directory.path).rows.count == 2)
    for (pipeline, place) in [("opps", ["2", "42", "opps"]), ("opps-2", ["1", "7", "opps-2"])] {
      let rows = try ViewFiles.query("Opportunity@\(pipeline)", of: self.directory.path).rows
      #expect(rows.count == 1)
      #expect(rows.first?.suffix(3).compactMap { $0 } == place)
    }
  }

  @Test("Several entities share one ordered file of views, and unusual names are quoted")
  func entities() throws {
    for (entity, name) in [("Lead", "x"), ("Account", "it's \"q\"")] {
      let layout = RecordLayout(
        topic: "/data/ChangeEvents", schemaID: "s", entity: entity, family: .changeEvent,
        slotCount: 20, fieldOrder: [],
        columns: [Column(name, 16, .int32), Column(name.uppercased(), 17, .int32)])
      try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
        layout, entityDirectory: entity)
    }
    let text = try String(contentsOfFile: "\(self.directory.path)/_views.sql", encoding: .utf8)
    let views = text.split(separator: "\n").filter { $0.hasPrefix("CREATE") }
    #expect(
      views == [
        "CREATE OR REPLACE VIEW \"Account\" AS", "CREATE OR REPLACE VIEW \"Lead\" AS",
        "CREATE OR REPLACE VIEW \"_freshness\" AS", "CREATE OR REPLACE VIEW \"_fields\" AS",
        "CREATE OR REPLACE VIEW \"_picklist\" AS",
      ])
    #expect(text.contains("    'it''s \"q\"': 'INTEGER',\n"))
    #expect(text.contains("FROM read_json('\(self.directory.path)/[L.]ead/*/*.ndjson.zst',"))
    #expect(text.contains("-- Left out, since names of DuckDB do not differ in case: X\n"))
  }

  @Test("A view without files is empty and keeps its columns, and the others can be made")
  func noFiles() throws {
    let lead = self.layout([Column("Name", 16, .string)], entity: "Lead")
    let catalog = ColumnCatalog(directory: self.directory.path, pipeline: "opps")
    try catalog.add(lead, entityDirectory: "Lead")
    let event = RecordLayout(
      topic: "/event/Order__e", schemaID: "s", entity: "Order__e", family: .platformEvent,
      slotCount: 20, fieldOrder: [], columns: [Column("Name", 16, .string)])
    try catalog.add(event, entityDirectory: "Order__e")
    let full = try self.rows(self.directory.path, columns: ["Name"])
    #expect(full.rows.count == 1)
    let names = full.names
    let leads = try ViewFiles.query("Lead", of: self.directory.path)
    #expect(leads.names == names)
    #expect(leads.rows == [])
    let events = try ViewFiles.query("Order__e", of: self.directory.path)
    #expect(events.names == names.map { $0 == "commit_date" ? "export_date" : $0 })
    #expect(events.rows == [])

    // A loader removes the file with its folder, and a new one arrives.
    let folder = "\(self.directory.path)/Opportunity/commit_date=2026-02-17"
    try FileManager.default.removeItem(atPath: folder)
    let emptied = try ViewFiles.query("Opportunity", of: self.directory.path)
    #expect(emptied.names == names)
    #expect(emptied.rows == [])
    try self.write(self.directory.path, columns: ["Name"])
    #expect(try ViewFiles.query("Opportunity", of: self.directory.path).rows.count == 1)
  }

  @Test("The empty files of two entities that differ in the first letter do not mix their folders")
  func sharedEmptyFile() throws {
    try self.write(self.directory.path, columns: ["Name"])
    let event = RecordLayout(
      topic: "/event/Xpportunity", schemaID: "s", entity: "Xpportunity", family: .platformEvent,
      slotCount: 20, fieldOrder: [], columns: [Column("Name", 16, .string)])
    try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
      event, entityDirectory: "Xpportunity")
    let text = try String(contentsOfFile: "\(self.directory.path)/_views.sql", encoding: .utf8)
    #expect(text.contains("/Opportunity/*/*.ndjson.zst"))
    #expect(text.contains("/Xpportunity/*/*.ndjson.zst"))
  }

  @Test("A value that DuckDB cannot hold is NULL, and all others are read")
  func outOfRange() throws {
    let layout = self.layout([
      Column("day", 16, .date(.days)), Column("time", 17, .time(.milliseconds)),
      Column("at", 18, .timestamp(.milliseconds, isLocal: false)),
      Column("local", 19, .timestamp(.microseconds, isLocal: true)),
      Column("fine", 20, .timestamp(.nanoseconds, isLocal: true)),
      Column("price", 21, .decimal(precision: 10, scale: 2)), Column("key", 22, .uuid),
    ])
    try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
      layout, entityDirectory: "Opportunity")
    let lines = [
      #"{"day":"+294247-01-11","time":"25:00:00.000","at":"+292278994-08-17T07:12:55.807Z","local":"+294247-01-11T00:00:00.000000","fine":"2300-01-01T00:00:00.000000000","price":"12345678901.25","key":"none"}"#,
      #"{"day":"+10000-01-01","time":"04:03:15.123","at":"+10000-01-01T00:00:00.000Z","local":"-000001-01-01T00:00:00.000000","fine":"2200-01-01T00:00:00.000000001","price":"1.25","key":"123e4567-e89b-12d3-a456-426614174000"}"#,
      #"{"day":"2026-02-17"}"#,
    ]
    try ViewFiles.finish(
      lines.map { $0 + "\n" }.joined(),
      as: "opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst",
      in: "\(self.directory.path)/Opportunity/commit_date=2026-02-17")
    let (names, rows) = try ViewFiles.query("Opportunity", of: self.directory.path)
    #expect(names.prefix(7) == ["day", "time", "at", "local", "fine", "price", "key"])
    let found = rows.map { Array($0.prefix(7)) }
    #expect(found.count == 3)
    #expect(
      found.contains([
        "10000-01-01", "04:03:15.123", "10000-01-01 00:00:00+00", "0002-01-01 (BC) 00:00:00",
        "2200-01-01 00:00:00.000000001", "1.25", "123e4567-e89b-12d3-a456-426614174000",
      ]))
    #expect(found.contains(["2026-02-17", nil, nil, nil, nil, nil, nil]))
    // DuckDB's dates go further than its times.
    #expect(found.contains(["294247-01-11", nil, nil, nil, nil, nil, nil]))
  }

  private func changes(without removed: String? = nil, entity: String = "Lead") -> RecordLayout {
    let columns =
      Column.changeMetadata(topic: "/data/LeadChangeEvent", schemaID: "s1")
      + [Column("Name", MetadataSlot.count, .string)]
    return self.layout(columns.filter { $0.name != removed }, entity: entity)
  }

  private func views(of layouts: RecordLayout...) throws -> String {
    for layout in layouts {
      try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
        layout, entityDirectory: layout.entity)
    }
    return try String(contentsOfFile: "\(self.directory.path)/_views.sql", encoding: .utf8)
  }

  @Test("The view of current records is empty without files")
  func noCurrentRecords() throws {
    _ = try self.views(of: self.changes())
    let current = try ViewFiles.query("Lead_now", of: self.directory.path)
    #expect(
      current.names == ["_record_id", "_changed_at", "_read_at", "_partial", "_stale", "Name"])
    #expect(current.rows == [])
  }

  @Test(
    "People have their full name, however their columns are named",
    arguments: [
      (["Name_FirstName", "Name_LastName", "Name_Salutation"], "ADA LOVELACE"),
      (["FirstName", "MiddleName", "LastName", "Suffix"], "ADA KING LOVELACE III"),
      (["LastName"], "LOVELACE"), (["Name_LastName", "Name"], "ADA"), (["FirstName"], nil),
    ])
  func fullName(columns: [String], name: String?) throws {
    let values = [
      "FirstName": "ADA", "MiddleName": "KING", "LastName": "LOVELACE", "Suffix": "III",
      "Salutation": "Ms.", "Name": "ADA",
    ]
    let layout = self.layout(
      self.changes().columns.filter(\.isMetadata)
        + columns.enumerated().map { Column($1, 200 + $0, .string) }, entity: "Lead")
    _ = try self.views(of: layout)
    func line(_ record: String, _ members: [String]) -> String {
      """
      {"_topic":"/data/LeadChangeEvent","_kind":"change","_change_type":"CREATE",\
      "_record_id":"\(record)","_commit_timestamp":"2026-02-17T10:00:00.000Z"\
      \(members.map { "," + $0 }.joined())}

      """
    }
    let members = columns.map { column in
      "\"\(column)\":\"\(values[column.replacing("Name_", with: "")] ?? "")\""
    }
    try ViewFiles.finish(
      line("00Q1", members) + line("00Q2", []),
      as: "opps-LeadChangeEvent-e1-000000000001.ndjson.zst",
      in: "\(self.directory.path)/Lead/commit_date=2026-02-17")
    let (names, rows) = try ViewFiles.query("Lead_now", of: self.directory.path)
    let place = names.firstIndex(of: "Name")
    #expect((place != nil) == (name != nil))
    guard let place else { return }
    #expect(Set(rows.map { [$0[0], $0[place]] }) == [["00Q1", name], ["00Q2", nil]])
  }

  @Test(
    "Fields and choices have the columns of the tables in PostgreSQL, whatever their labels are")
  func descriptions() throws {
    let catalog = ColumnCatalog(directory: self.directory.path, pipeline: "opps")
    let label = "St\u{e4}ge's \"x\" \\ \u{7f} {a: 1}"
    let owner = FieldDescription(
      name: "OwnerId", label: label, type: "reference", length: 18, references: ["User", "Group"],
      formula: "A & \"b\"\nC", helpText: "Help\twith; it")
    let stage = FieldDescription(
      name: "StageName", label: "Stage", type: "picklist",
      choices: [
        FieldDescription.Choice(value: "New", label: label, isActive: true, isDefault: true),
        FieldDescription.Choice(value: "Old", label: "Old", isActive: false, isDefault: false),
        FieldDescription.Choice(value: "New", label: "twice", isActive: true, isDefault: false),
      ])
    func set(_ fields: [FieldDescription], at time: Int64) throws -> Bool {
      try catalog.setFields(["Lead": fields], at: time)
    }
    #expect(try !set([owner], at: 0))
    _ = try self.views(of: self.changes())
    #expect(try ViewFiles.query("_fields", of: self.directory.path).rows == [])
    let path = "\(self.directory.path)/_fields.ndjson"
    // Somebody has edited it.
    try
      "{\"entity\":\"Lead\",\"length\":\"x\"}\nno JSON\n{\"entity\":\"Account\",\"field\":\"A\"}\n"
      .write(
        toFile: path, atomically: true, encoding: .utf8)
    #expect(try set([owner, stage], at: 1_771_300_995_000))
    let (names, rows) = try ViewFiles.query("_fields", of: self.directory.path)
    #expect(
      names == [
        "entity", "field", "label", "type", "length", "reference_to", "formula", "help_text",
        "changed_at",
      ])
    let first = "2026-02-17 04:03:15+00"
    #expect(rows.first?.prefix(3) == ["Account", "A", nil])
    #expect(
      rows.dropFirst() == [
        [
          "Lead", "OwnerId", label, "reference", "18", "[User, Group]", "A & \"b\"\nC",
          "Help\twith; it", first,
        ], ["Lead", "StageName", "Stage", "picklist", nil, nil, nil, nil, first],
      ])
    let choices = try ViewFiles.query("_picklist", of: self.directory.path)
    #expect(
      choices.names == [
        "entity", "field", "value", "label", "is_active", "is_default", "position", "changed_at",
      ])
    #expect(
      choices.rows == [
        ["Lead", "StageName", "New", label, "true", "true", "1", first],
        ["Lead", "StageName", "Old", "Old", "false", "false", "2", first],
      ])
    // What has changed has another time, and what is the same keeps its own.
    var renamed = stage
    renamed.label = "Phase"
    #expect(try set([owner, renamed], at: 1_771_300_996_000))
    #expect(
      try ViewFiles.query("_fields", of: self.directory.path).rows.map { $0[8] }
        == [nil, first, "2026-02-17 04:03:16+00"])
    let before = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
    #expect(try set([owner, renamed], at: 1_771_300_997_000))
    let after = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
    #expect(before != nil && before == after)
  }

  @Test(
    "The view of changes needs no more than the view of current records",
    arguments: [nil, "_commit_user", "_transaction_key", "_schema_id"])
  func changes(removed: String?) throws {
    let layout = self.changes(without: removed)
    _ = try self.views(of: layout, self.changes(entity: "User"))
    let changes = try ViewFiles.query("Lead_changes", of: self.directory.path)
    #expect(
      changes.names == [
        "id", "field", "old_value", "new_value", "changed_at", "changed_by", "changed_by_name",
        "change_type", "transaction_key", "old_is_known", "new_is_known", "source",
      ])
    #expect(changes.rows == [])
  }

  @Test("Fields may have the names that the views of current records and changes use themselves")
  func takenNames() throws {
    let names = [
      "Age", "N", "Gap", "Created", "File", "Time", "Place", "Line", "Id", "Field", "Value",
      "Losses", "Type", "Schema", "Fields", "Diffs", "User_id", "Stream", "Lines", "Events",
      "Reads", "Read", "Event", "Known", "Old", "Text", "Texts", "Stamp", "Is_had", "Is_known",
      "Is_read", "Changed_at", "Old_value", "U", "C", "E", "F", "H", "L", "R", "T", "Na\"me",
      "it's",
    ]
    let layout = self.layout(
      self.changes().columns + names.enumerated().map { Column($1, 200 + $0, .string) },
      entity: "Lead")
    _ = try self.views(of: layout)
    func line(_ type: String, minute: Int, _ suffix: String, _ more: String) -> String {
      let members = names.map { name in
        let quoted = name.replacing("\"", with: "\\\"")
        return "\"\(quoted)\":\"\(quoted)\(suffix)\""
      }
      return """
        {"_topic":"/data/LeadChangeEvent","_schema_id":"s1","_entity":"Lead","_change_type":"\(type)",\
        "_record_id":"00Q","_commit_timestamp":"2026-02-17T10:0\(minute):00.000Z",\
        "_transaction_key":"t\(minute)","Name":"x",\(members.joined(separator: ","))\(more)}

        """
    }
    let listed = JSONValue.array(names.map { .string($0) }).text()
    try ViewFiles.finish(
      line("CREATE", minute: 1, "", #","_kind":"change""#)
        + line("UPDATE", minute: 2, " 2", #","_kind":"change","_changed_fields":\#(listed)"#),
      as: "opps-LeadChangeEvent-e1-000000000001.ndjson.zst",
      in: "\(self.directory.path)/Lead/commit_date=2026-02-17")
    try ViewFiles.finish(
      line(
        "SNAPSHOT", minute: 3, " 3",
        #","_kind":"snapshot","_system_modstamp":"2026-02-17T10:03:00.000Z""#
          + #","_read_at":"2026-02-17T10:05:00.000Z""#),
      as: "opps-LeadChangeEvent-e1-000000000003-s1-r1-1.ndjson.zst",
      in: "\(self.directory.path)/Lead/commit_date=2026-02-17")
    let current = try ViewFiles.query("Lead_now", of: self.directory.path)
    #expect(current.rows.map { $0.suffix(names.count) } == [names.map { "\($0) 3" }[...]])
    let changes = try ViewFiles.query("Lead_changes", of: self.directory.path)
    let updates = changes.rows.filter { $0[7] == "UPDATE" }.map { [$0[1], $0[2], $0[3]] }
    #expect(Set(updates) == Set(names.map { [$0, $0, "\($0) 2"] }))
  }

  @Test("A removed metadata column that current records need is named instead of their view")
  func noCurrentView() throws {
    let text = try self.views(of: self.changes(without: "_change_type"))
    #expect(!text.contains("Lead_now\" AS"))
    #expect(text.contains("-- No view Lead_now: a stage removes the column _change_type.\n"))
  }

  @Test("An object without columns of its own costs no view of the others")
  func noColumns() throws {
    let bare = self.layout(
      Column.changeMetadata(topic: "/data/LeadChangeEvent", schemaID: "s1"), entity: "Account")
    let text = try self.views(of: bare, self.changes())
    #expect(text.contains("-- No view Account_now: there are no columns of records.\n"))
    #expect(try ViewFiles.query("Lead_now", of: self.directory.path).rows == [])
    let (names, rows) = try ViewFiles.query("_freshness", of: self.directory.path)
    let stale = try #require(names.firstIndex(of: "stale"))
    #expect(rows.map { [$0[0], $0[stale]] } == [["Account", nil], ["Lead", "0"]])
  }

  @Test("An object named like the view of freshness keeps its view")
  func freshnessNameTaken() throws {
    try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
      self.layout([Column("Name", 16, .string)], entity: "_Freshness"), entityDirectory: "Freshness"
    )
    let text = try String(contentsOfFile: "\(self.directory.path)/_views.sql", encoding: .utf8)
    #expect(text.contains("CREATE OR REPLACE VIEW \"_Freshness\" AS\nSELECT *"))
    #expect(!text.contains("\"_freshness\""))
  }

  @Test("An object named like the current records of another keeps its view")
  func currentNameTaken() throws {
    let text = try self.views(of: self.changes(), self.changes(entity: "Lead_Now"))
    #expect(text.contains("CREATE OR REPLACE VIEW \"Lead_Now\" AS\nSELECT *"))
    #expect(!text.contains("\"Lead_now\""))
  }

  @Test("DuckDB gets only one of two entities whose names differ only in case")
  func entitiesInCase() throws {
    for entity in ["Lead", "LEAD"] {
      try ColumnCatalog(directory: self.directory.path, pipeline: "opps").add(
        self.layout([Column("Name", 16, .string)], entity: entity), entityDirectory: entity)
    }
    let text = try String(contentsOfFile: "\(self.directory.path)/_views.sql", encoding: .utf8)
    #expect(text.contains("CREATE OR REPLACE VIEW \"LEAD\" AS"))
    #expect(!text.contains("CREATE OR REPLACE VIEW \"Lead\" AS"))
    #expect(text.contains("-- Left out, since names of DuckDB do not differ in case: Lead\n"))
  }
}

/// Finished files of tests, and what DuckDB reads in them.
enum ViewFiles {
  /// Puts a compressed file under a final name.
  static func finish(_ lines: String, as name: String, in directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    try lines.write(toFile: "\(directory)/data", atomically: false, encoding: .utf8)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "zstd", "-q", "-f", "--rm", "\(directory)/data", "-o", "\(directory)/\(name)",
    ]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
  }

  /// The columns of a view and its rows, each value as text.
  static func query(
    _ view: String, of directory: String
  ) throws -> (names: [String], rows: [[String?]]) {
    let lines = try PythonScript.run("query_views.py", [directory, view])
      .split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    return (
      (lines[0].array ?? []).map { $0.array?.first?.string ?? "" },
      lines.dropFirst().map { ($0.array ?? []).map { $0.string } }
    )
  }
}
