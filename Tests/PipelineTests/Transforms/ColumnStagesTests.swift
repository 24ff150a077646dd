import JSON
import Pipeline
import Testing

@Suite("Select, drop, rename")
struct ColumnStagesTests {
  private let input = RecordLayout.of([
    Column(metadata: "_record_id", 0), Column(metadata: "_change_origin", 1), Column("Name", 2),
    Column("Amount", 3, .double), Column(record: "Address", 4, children: ["City"]),
  ])

  @Test("Select keeps metadata and the named fields, in schema order")
  func select() throws {
    let stage = Select(["Address", "Name"])
    #expect(
      try stage.layout(for: self.input).names == [
        "_record_id", "_change_origin", "Name", "Address",
      ]
    )
    #expect(stage.namedColumns?.unmatched == [])
  }

  @Test("Drop removes fields, records and metadata")
  func drop() throws {
    let stage = Drop(["_change_origin", "Address", "Amount"])
    #expect(try stage.layout(for: self.input).names == ["_record_id", "Name"])
  }

  @Test("Rename renames fields and metadata, all at once, and keeps paths")
  func rename() throws {
    let stage = Rename(["Name": "Amount", "Amount": "Name", "_record_id": "id"])
    let output = try stage.layout(for: self.input)
    #expect(output.names == ["id", "_change_origin", "Amount", "Name", "Address"])
    #expect(output.columns[2].path == ["Name"])
    #expect(output.columns[3].content == .slot(3, .double))
    #expect(output.columns[0].isMetadata)
  }

  @Test("Rename to a name that exists is an error that names both paths")
  func renameCollision() throws {
    let error = try #require(throws: TransformError.self) {
      try Rename(["Amount": "Name"]).layout(for: self.input)
    }
    #expect(error.code == .duplicateColumn)
    #expect(
      error.message.hasPrefix("stage rename: Name and Amount would both become column 'Name'"))
  }

  @Test("A column cannot take the name of the member for NaN and infinities")
  func reserved() throws {
    let error = try #require(throws: TransformError.self) {
      try Rename(["Amount": "_nonfinite"]).layout(for: self.input)
    }
    #expect(error.code == .reservedColumn)
    #expect(error.message.contains("Amount cannot become column '_nonfinite'"))
  }

  @Test("A name that one schema lacks is accepted, and one that no schema has is reported")
  func unmatched() throws {
    let stage = Select(["Name", "LeadSource", "Amuont"])
    _ = try stage.layout(for: self.input)
    #expect(stage.namedColumns?.unmatched == ["Amuont", "LeadSource"])
    _ = try stage.layout(for: .of([Column("LeadSource", 0)]))
    #expect(stage.namedColumns?.unmatched == ["Amuont"])
  }

  @Test("With missing = fail, the first schema that lacks a name is an error")
  func missingFails() throws {
    let stages: [any Transform] = [
      Select(["Name", "Amuont"], missing: .fail), Drop(["Amuont"], missing: .fail),
      Rename(["Amuont": "x"], missing: .fail),
    ]
    for stage in stages {
      let error = try #require(throws: TransformError.self) { try stage.layout(for: self.input) }
      #expect(error.code == .unknownColumn)
      #expect(
        error.message.contains(
          "no column 'Amuont' (nearest: Amount) (topic /data/AccountChangeEvent"))
    }
  }
}
