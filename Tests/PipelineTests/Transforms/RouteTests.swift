import JSON
import Testing

@testable import Pipeline

@Suite("Stage route")
struct RouteTests {
  private static let stage =
    #"{"type":"route","routes":[{"where":"Amount >= 10.0","to":["big"]},"#
    + #"{"where":"_change_type == 'DELETE'","to":["gone"]},"#
    + #"{"entity":["Account","Lead"],"to":["accounts"]}],"default":["rest"]}"#

  private func route(_ stage: String = Self.stage) throws -> Route {
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      try JSONValue(parsing: stage), path: "/stages/0", mistakes: mistakes)
    return try #require(TransformRegistry.stage(reading: reader)?() as? Route)
  }

  /// The sinks that get each row.
  private func sinks(_ rows: [StageRows.Row]) throws -> [[String]] {
    let fixture = StageRows([("Amount", .double), ("Name", .string)])
    for row in rows { fixture.add(row) }
    let route = try self.route()
    try StageChain([route]).apply(to: fixture.batch)
    var sinks = rows.map { _ in [String]() }
    for sink in try #require(route.sinks) {
      let copy = RecordBatch(layout: fixture.layout)
      copy.replaceAll(with: fixture.batch)
      try StageChain([#require(route.filter(for: sink))], sink: sink).apply(to: copy)
      for row in 0..<copy.rowCount {
        let id = String(decoding: copy.row(row).text(MetadataSlot.recordID), as: UTF8.self)
        sinks[try #require(Int(id.dropFirst(4)))].append(sink)
      }
    }
    return sinks
  }

  @Test("The first route whose condition holds takes a row, and an absent field does not decide")
  func rows() throws {
    let rows = [
      StageRows.Row(cells: ["Amount": .double(11)]), StageRows.Row(cells: ["Amount": .double(9)]),
      StageRows.Row(cells: ["Name": .text("A")]), StageRows.Row(changeType: "DELETE"),
      StageRows.Row(kind: .snapshot, changeType: "SNAPSHOT", cells: ["Amount": .null]),
    ]
    #expect(try self.sinks(rows) == [["big"], ["accounts"], ["accounts"], ["gone"], ["gone"]])
  }

  @Test("A line about a whole object goes wherever a row of the object may go")
  func wholeObjects() throws {
    let row = StageRows.Row(kind: .overflow, changeType: "GAP_OVERFLOW")
    #expect(try self.sinks([row]) == [["big", "gone", "accounts"]])
  }

  /// A route with one condition, of rows of Account.
  private func route(where condition: String) throws -> Route {
    try self.route(
      #"{"type":"route","routes":[{"where":"\#(condition)","to":["some"]}],"default":["rest"]}"#)
  }

  @Test(
    "Whether rows of an object can reach a sink is known before there are rows",
    arguments: [
      ("_entity == 'Account'", true, false), ("_entity == 'Lead'", false, true),
      ("_entity in ['Lead', 'Contact']", false, true), ("_entity != 'Account'", false, true),
      ("_entity == 'Lead' && Amount > 1.0", false, true),
      ("_entity == 'Account' && Amount > 1.0", true, true), ("Amount > 1.0", true, true),
      // What the row does not have is not known to be absent.
      ("has(row.Amount)", true, true), ("!has(row.Amount)", true, true),
      ("has(row.Amount) && _entity == 'Lead'", false, true), ("'Amount' in row", true, true),
      ("_change_type == 'DELETE' || _entity == 'Account'", true, false),
    ])
  func reach(condition: String, some: Bool, rest: Bool) throws {
    let fixture = StageRows([("Amount", .double)])
    let route = try self.route(where: condition)
    let routed = try StageChain([route]).layout(for: fixture.layout)
    for (sink, brings) in [("some", some), ("rest", rest)] {
      #expect(try StageChain([#require(route.filter(for: sink))]).bringsRows(of: routed) == brings)
    }
    #expect(try StageChain([]).bringsRows(of: routed))
  }

  @Test("A line about a whole object goes to the route of rows that have a field")
  func wholeObjectsWithFields() throws {
    let fixture = StageRows([("Amount", .double)])
    fixture.add(StageRows.Row(kind: .overflow, changeType: "GAP_OVERFLOW"))
    let route = try self.route(where: "has(row.Amount) && Amount > 1.0")
    try StageChain([route]).apply(to: fixture.batch)
    for sink in ["some", "rest"] {
      let copy = RecordBatch(layout: fixture.layout)
      copy.replaceAll(with: fixture.batch)
      try StageChain([#require(route.filter(for: sink))], sink: sink).apply(to: copy)
      #expect(copy.rowCount == 1, "\(sink)")
    }
  }

  @Test("Objects that no topic brings are found by name and in conditions")
  func unreachable() throws {
    let route = try self.route(
      #"{"type":"route","routes":[{"entity":["Account","Acount"],"to":["a"]},"#
        + #"{"where":"_entity == 'Led' || _entity == 'Opp'","to":["b"]},"#
        + #"{"where":"_entity != 'Led' && Amount > 1.0","to":["b"]}],"default":[]}"#)
    let found = route.unreachableRoutes(among: ["Account", "Lead"])
    #expect(found.map(\.rule) == [0, 1])
    #expect(
      found.map(\.reason) == [
        "no topic of the pipeline brings 'Acount'; its objects: Account, Lead",
        "'_entity == 'Led' || _entity == 'Opp'' holds for no object of the pipeline: Account, Lead",
      ])
  }

  @Test("An event whose header and schema name different objects is refused")
  func otherObject() throws {
    let fixture = StageRows([])
    fixture.add(StageRows.Row())
    let layout = fixture.layout.with(
      columns: fixture.layout.columns.map {
        $0.name == "_entity" ? Column(metadata: "_entity", MetadataSlot.entity) : $0
      })
    for (entity, isRefused) in [("Lead", true), ("Account", false)] {
      let batch = RecordBatch(layout: layout)
      batch.replaceAll(with: fixture.batch)
      batch.layout = layout
      let range = Array(entity.utf8).withUnsafeBufferPointer { batch.append($0) }
      batch.row(0).set(MetadataSlot.entity, to: range)
      let chain = StageChain([try self.route(where: "_entity == 'Lead'")])
      try chain.apply(to: batch)
      #expect(
        chain.takeRefusedEvents().map { $0.reason.hasSuffix("than its schema, Account") }
          == (isRefused ? [true] : []))
    }
  }
}
