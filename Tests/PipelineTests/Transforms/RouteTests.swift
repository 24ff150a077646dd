import JSON
import Testing

@testable import Pipeline

@Suite("Stage route")
struct RouteTests {
  private static let stage =
    #"{"type":"route","routes":[{"where":"Amount >= 10.0","to":["big"]},"#
    + #"{"where":"_change_type == 'DELETE'","to":["gone"]},"#
    + #"{"entity":["Account","Lead"],"to":["accounts"]}],"default":["rest"]}"#

  private func route() throws -> Route {
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      try JSONValue(parsing: Self.stage), path: "/stages/0", mistakes: mistakes)
    return try #require(TransformRegistry.transform(reading: reader) as? Route)
  }

  /// The sinks that get each row.
  private func sinks(_ rows: [StageRows.Row]) throws -> [[String]] {
    let fixture = StageRows([("Amount", .double), ("Name", .string)])
    for row in rows { fixture.add(row) }
    let route = try self.route()
    try StageChain([route]).apply(to: fixture.batch)
    var sinks = rows.map { _ in [String]() }
    for sink in route.sinks {
      let copy = RecordBatch(layout: fixture.layout)
      copy.replaceAll(with: fixture.batch)
      try StageChain([route.filter(for: sink)], sink: sink).apply(to: copy)
      for row in 0..<copy.rowCount {
        let id = String(decoding: copy.row(row).text(MetadataSlot.recordID), as: UTF8.self)
        sinks[try #require(Int(id.dropFirst(4)))].append(sink)
      }
    }
    return sinks
  }

  @Test(
    "The first route whose condition holds takes a row; an absent field does not decide for one")
  func rows() throws {
    let rows = [
      StageRows.Row(cells: ["Amount": .double(11)]), StageRows.Row(cells: ["Amount": .double(9)]),
      StageRows.Row(cells: ["Name": .text("A")]), StageRows.Row(changeType: "DELETE"),
      StageRows.Row(kind: .snapshot, changeType: "SNAPSHOT", cells: ["Amount": .null]),
    ]
    #expect(try self.sinks(rows) == [["big"], ["accounts"], ["accounts"], ["gone"], ["gone"]])
  }

  @Test("A line about a whole object goes wherever a row of the object may go, and nowhere else")
  func wholeObjects() throws {
    let row = StageRows.Row(kind: .overflow, changeType: "GAP_OVERFLOW")
    #expect(try self.sinks([row]) == [["big", "gone", "accounts"]])
  }
}
