import JSON
import Testing

@testable import Pipeline

/// The example of the page WritingAStage.
@Suite("Book: a stage")
struct LowerCaseTests {
  private static let columns: [(String, ColumnType)] = [
    ("Email", .string), ("Name", .string), ("Amount", .double),
  ]

  private func stage(_ text: String) throws -> (stage: LowerCase?, mistakes: [JSONMistake]) {
    let mistakes = JSONMistakes()
    let reader = JSONReader(try JSONValue(parsing: text), path: "/stages/0", mistakes: mistakes)
    let stage = LowerCase.read(reader)() as? LowerCase
    return (stage, mistakes.all)
  }

  private func rows(_ cells: [[String: CellValue]]) -> StageRows {
    let rows = StageRows(Self.columns)
    for cells in cells { rows.add(StageRows.Row(cells: cells)) }
    return rows
  }

  @Test("Text is written in lower case, and null, absent and other columns stay")
  func lowerCase() throws {
    let rows = self.rows([
      ["Email": .text("Anna.Ä@Example.COM"), "Name": .text("Anna")],
      ["Email": .text("")], ["Email": .null], ["Name": .text("Bo")],
    ])
    let stage = try #require(try self.stage(#"{"type":"lower","columns":["Em*"]}"#).stage)
    try StageChain([stage]).apply(to: rows.batch)
    #expect(rows.value("Email", ofRow: 0) == .text("anna.Ä@example.com"))
    #expect(rows.value("Name", ofRow: 0) == .text("Anna"))
    #expect(rows.value("Email", ofRow: 1) == .text(""))
    #expect(rows.value("Email", ofRow: 2) == .null)
    #expect(rows.value("Email", ofRow: 3) == .absent)
    #expect(rows.value("Name", ofRow: 3) == .text("Bo"))
  }

  @Test("A diff of a long text is emptied, so that tables request the record again")
  func diff() throws {
    let rows = self.rows([["Email": .text("+++ ABC")]])
    let slot = MetadataSlot.count
    var bits = [UInt8](repeating: 0, count: (rows.layout.slotCount + 7) / 8)
    bits[slot / 8] = 1 << UInt8(slot % 8)
    let range = bits.withUnsafeBufferPointer { rows.batch.append($0) }
    rows.batch.row(0).set(MetadataSlot.diffFields, to: range)
    let stage = try #require(try self.stage(#"{"type":"lower","columns":["Email"]}"#).stage)
    try StageChain([stage]).apply(to: rows.batch)
    #expect(rows.value("Email", ofRow: 0) == .text(""))
  }

  @Test("An event whose texts would make the batch too large is refused")
  func room() throws {
    let rows = self.rows([["Email": .text("A")], ["Email": .text("B")]])
    let text = [UInt8](
      repeating: UInt8(ascii: "A"), count: RecordBatch.maxStagedByteCount / 2 - 65_536)
    let range = text.withUnsafeBufferPointer { rows.batch.append($0) }
    for row in 0..<2 { rows.batch.row(row).set(MetadataSlot.count, to: range) }
    let stage = try #require(try self.stage(#"{"type":"lower","columns":["Email"]}"#).stage)
    _ = try stage.layout(for: rows.layout)
    try stage.apply(to: rows.batch)
    #expect(rows.batch.refusals.map(\.event) == [1])
    #expect(rows.batch.byteCount <= RecordBatch.maxStagedByteCount)
  }

  @Test("A column of another type and an unknown member are mistakes")
  func mistakes() throws {
    let stage = try #require(try self.stage(#"{"type":"lower","columns":["Amount"]}"#).stage)
    let error = try #require(throws: TransformError.self) {
      _ = try stage.layout(for: self.rows([]).layout)
    }
    #expect(error.message.contains("column 'Amount' is not a field of type string"))
    let metadata = try #require(try self.stage(#"{"type":"lower","columns":["_record_id"]}"#).stage)
    #expect(throws: TransformError.self) { try metadata.layout(for: self.rows([]).layout) }
    let unknown = try self.stage(#"{"type":"lower","columns":["Email"],"upper":true}"#)
    #expect(unknown.mistakes.count == 1)
    #expect(
      try self.stage(#"{"type":"lower"}"#).mistakes.map(\.description) == [
        "/stages/0/columns: is required"
      ])
  }

  @Test("A name that no schema has is reported as missing")
  func missing() throws {
    let stage = try #require(try self.stage(#"{"type":"lower","columns":["Emial"]}"#).stage)
    _ = try stage.layout(for: self.rows([]).layout)
    #expect(stage.namedColumns?.unmatched == ["Emial"])
  }
}
