import JSON
import Testing

@testable import Pipeline

@Suite("Stage filter")
struct FilterTests {
  private static let columns: [(String, ColumnType)] = [
    ("Name", .string), ("Amount", .double), ("IsWon", .boolean), ("Count", .int32),
  ]

  /// The rows that a filter keeps, by their number.
  private func kept(_ stage: String, _ rows: [StageRows.Row]) throws -> [Int] {
    let fixture = StageRows(Self.columns)
    for row in rows { fixture.add(row) }
    try StageChain(json: [stage]).apply(to: fixture.batch)
    #expect(fixture.batch.events.count == rows.count)
    return fixture.recordIDs().compactMap { Int($0.dropFirst(4)) }
  }

  private static let update = StageRows.Row(cells: ["Amount": .double(1200.5)])
  private static let other = StageRows.Row(cells: ["Name": .text("A")])
  private static let nulled = StageRows.Row(cells: ["Amount": .null])

  @Test("An update that does not carry the field is kept unless the stage says otherwise")
  func absent() throws {
    let rows = [Self.update, Self.other, Self.nulled]
    let condition = #""type":"filter","where":"Amount >= 1000""#
    #expect(try self.kept("{\(condition)}", rows) == [0, 1])
    #expect(try self.kept(#"{\#(condition),"absent":"drop"}"#, rows) == [0])
  }

  @Test("A side that decides the condition makes an absent field irrelevant")
  func absorbed() throws {
    let condition = #"{"type":"filter","where":"Name == 'B' && Amount >= 1000"}"#
    #expect(try self.kept(condition, [Self.other, Self.update]) == [1])
  }

  @Test(
    "A field that an event lacks is null, except in updates and gaps",
    arguments: [
      ("CREATE", EventKind.change, false), ("UNDELETE", .change, false), ("DELETE", .change, false),
      ("UPDATE", .change, true), ("GAP_UPDATE", .gap, true), ("SNAPSHOT", .snapshot, true),
      ("GAP_OVERFLOW", .overflow, true),
    ])
  func character(changeType: String, kind: EventKind, isKept: Bool) throws {
    let row = StageRows.Row(kind: kind, changeType: changeType)
    let stage = #"{"type":"filter","where":"Name == 'A'"}"#
    #expect(try self.kept(stage, [row]) == (isKept ? [0] : []))
  }

  @Test("Records that were read pass conditions on their change type")
  func reads() throws {
    let read = StageRows.Row(kind: .snapshot, changeType: "SNAPSHOT", cells: ["Name": .text("A")])
    let condition = #""type":"filter","where":"_change_type in ['CREATE','UPDATE'] && Name == 'A'""#
    #expect(try self.kept("{\(condition)}", [read, Self.nulled]) == [0, 1])
    #expect(try self.kept(#"{\#(condition),"snapshot":false}"#, [read, Self.nulled]) == [1])
    var other = read
    other.cells["Name"] = .text("B")
    #expect(try self.kept("{\(condition)}", [other]) == [])
  }

  @Test("An event with any other failure is refused, and the error has its place but no values")
  func failure() throws {
    let fixture = StageRows(Self.columns)
    fixture.add(StageRows.Row(cells: ["Count": .int(0)]))
    fixture.add(StageRows.Row(cells: ["Count": .int(5)]))
    let chain = try StageChain(json: [#"{"type":"filter","where":"10 / Count > 1"}"#])
    try chain.apply(to: fixture.batch)
    #expect(fixture.recordIDs() == ["001-1"])
    #expect(fixture.batch.events.map(\.ordinal) == [1])
    let refused = chain.takeRefusedEvents()
    #expect(refused.map(\.ordinal) == [0])
    #expect(
      refused.first?.reason == "stage filter (stages[0]): line 1, column 4: division by zero")
    #expect(refused.first?.refusal == nil)
    #expect(chain.takeRefusedEvents().isEmpty)
  }

  @Test("A read record that cannot be judged is reported by its ID")
  func unreadable() throws {
    let fixture = StageRows(Self.columns)
    fixture.add(StageRows.Row(kind: .snapshot, cells: ["Count": .int(0)]))
    let chain = try StageChain(json: [#"{"type":"filter","where":"10 / Count > 1"}"#])
    try chain.apply(to: fixture.batch)
    #expect(chain.takeUnreadable().map(\.recordID) == ["001-0"])
    #expect(fixture.batch.rowCount == 0)
  }

  @Test(
    "A filter brings no rows of an object that its condition leaves out",
    arguments: [
      ("_entity != 'Account'", false), ("_entity == 'Account'", true),
      ("_entity == 'Contact' && Amount > 1.0", false),
      ("_entity == 'Contact' || Amount > 1.0", true),
      ("Amount > 1.0", true),
    ])
  func objects(condition: String, brings: Bool) throws {
    let fixture = StageRows([("Amount", .double)])
    #expect(fixture.layout.entity == "Account")
    let chain = try StageChain(json: [#"{"type":"filter","where":"\#(condition)"}"#])
    #expect(try chain.bringsRows(of: fixture.layout) == brings)
  }

  @Test("Lists of fields are lists of names")
  func fieldSets() throws {
    let rows = [Self.update, Self.other, StageRows.Row(changeType: "CREATE")]
    let stage = #"{"type":"filter","where":"'Amount' in _changed_fields"}"#
    #expect(try self.kept(stage, rows) == [0])
  }

  @Test("A type error stops the run with column, place and expression")
  func typeErrors() throws {
    let fixture = StageRows(Self.columns)
    func message(_ stage: String) throws -> String {
      let chain = try StageChain(json: [stage])
      do {
        _ = try chain.layout(for: fixture.layout)
        return ""
      } catch { return "\(error)" }
    }
    let first = try message(#"{"type":"filter","where":"Name > 5"}"#)
    #expect(first.hasPrefix("stage filter: 'Name > 5': line 1, column 6: "), "\(first)")
    let second = try message(#"{"type":"filter","where":"Amount + 1.0"}"#)
    #expect(second.contains("yields double; a condition has to yield bool"), "\(second)")
  }

  @Test("A name that no schema has is reported with its place")
  func unknownName() throws {
    let chain = try StageChain(json: [#"{"type":"filter","where":"IsWon || row.Amonut > 1.0"}"#])
    _ = try chain.layout(for: StageRows(Self.columns).layout)
    let named = try #require(chain.namedColumns.first)
    #expect(named.unmatched == ["Amonut"])
    #expect(
      named.description(of: "Amonut")
        == "'Amonut' at line 1, column 14 of its expression (nearest: Amount)")
  }

  @Test("A syntax error is found when the file is read")
  func syntax() throws {
    let mistakes = JSONMistakes()
    let text = #"{"type":"filter","where":"Amount >="}"#
    let reader = JSONReader(try JSONValue(parsing: text), path: "/stages/0", mistakes: mistakes)
    _ = TransformRegistry.stage(reading: reader)
    #expect(mistakes.all.map(\.path) == ["/stages/0/where"])
  }
}
