import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// An update that names a compound field as a whole, under a schema that has other parts of it than
/// those that the table has seen.
@Suite("Compounds over schema versions", .enabled(if: PostgresCluster.isAvailable))
struct CompoundNullTests {
  /// `Address` with parts, its record in the first slot behind the metadata.
  private static func layout(_ schemaID: String, _ parts: [String]) -> RecordLayout {
    let first = MetadataSlot.count
    let columns = parts.enumerated().map { index, part in
      Column(
        name: "Address_\(part)", path: ["Address", part], content: .slot(first + 1 + index, .string)
      )
    }
    let name = Column(
      name: "Name", path: ["Name"], content: .slot(first + 1 + parts.count, .string))
    return RecordLayout(
      topic: "/data/AccountChangeEvent", schemaID: schemaID, entity: "Account",
      family: .changeEvent, slotCount: first + 2 + parts.count,
      fieldOrder: Array(first + 1..<first + 2 + parts.count), columns: columns + [name],
      compounds: [RecordLayout.Compound(slot: first, path: ["Address"])])
  }

  private static let older = layout("older", ["City", "Geo"])
  private static let newer = layout("newer", ["City", "Zip", "Land"])

  enum Naming: String, Sendable, CaseIterable { case nulled, changed, part, not }

  /// What the event names: the record's slot stands for all of it.
  private func metadata(_ naming: Naming, _ layout: RecordLayout) -> [Int: TestCell] {
    let record = MetadataSlot.count
    let parts = Array(record + 1..<layout.slotCount - 1)
    return switch naming {
    case .nulled:
      [
        MetadataSlot.changedFields: .slots([record] + parts),
        MetadataSlot.nulledFields: .slots([record] + parts),
      ]
    case .changed: [MetadataSlot.changedFields: .slots([record] + parts)]
    case .part: [MetadataSlot.changedFields: .slots([record + 1])]
    case .not: [MetadataSlot.changedFields: .slots([layout.slotCount - 1])]
    }
  }

  private func write(
    _ type: String, _ layout: RecordLayout, _ ordinal: Int64, _ fields: [Int: TestCell],
    _ metadata: [Int: TestCell] = [:], to sink: PostgresSink
  ) throws {
    let batch = RecordBatch(layout: layout)
    batch.addChange(type, "a", ordinal: ordinal, metadata: metadata, fields)
    try sink.take(batch)
  }

  @Test(
    "Naming a compound as a whole also nulls the parts that only other schemas have",
    arguments: Naming.allCases, [true, false])
  func parts(_ naming: Naming, isNewer: Bool) async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    let first = MetadataSlot.count
    let (before, after) = isNewer ? (Self.older, Self.newer) : (Self.newer, Self.older)
    // All parts are set, under both schemas; then the event.
    for (ordinal, layout) in [after, before].enumerated() {
      let slots = first + 1..<layout.slotCount
      let values = Dictionary(uniqueKeysWithValues: slots.map { ($0, TestCell.text("x")) })
      try self.write(
        ordinal == 0 ? "CREATE" : "UPDATE", layout, Int64(ordinal), values,
        [MetadataSlot.changedFields: .slots(Array(slots))], to: run.sink)
    }
    let parts = first + 1..<after.slotCount - 1
    let fields: [Int: TestCell] =
      switch naming {
      case .nulled: Dictionary(uniqueKeysWithValues: parts.map { ($0, TestCell.null) })
      case .changed:
        Dictionary(uniqueKeysWithValues: parts.map { ($0, $0 == first + 1 ? .text("y") : .null) })
      case .part: [first + 1: .text("y")]
      case .not: [after.slotCount - 1: .text("z")]
      }
    try self.write("UPDATE", after, 2, fields, self.metadata(naming, after), to: run.sink)
    try run.commit()
    let row =
      switch naming {
      case .nulled: ["-", "-", "-", "-", "x"]
      case .changed: ["y", "-", "-", "-", "x"]
      case .part: ["y", "x", "x", "x", "x"]
      case .not: ["x", "x", "x", "x", "z"]
      }
    let query = """
      SELECT address_city, address_geo, address_zip, address_land, name FROM salesforce.account
      """
    #expect(try run.eye.rows(query) == [row])
    // What was nulled is named, so that readers and rebuilding know it from what did not change.
    let names = try run.eye.rows(
      """
      SELECT 'address_geo' = ANY (_changed_fields) AND 'address_zip' = ANY (_changed_fields), \
      'address_geo' = ANY (_nulled_fields) AND 'address_zip' = ANY (_nulled_fields) \
      FROM salesforce.account_history WHERE _ordinal = 2
      """)
    #expect(
      names == [
        [naming == .nulled || naming == .changed ? "t" : "f", naming == .nulled ? "t" : "f"]
      ])
    let connection = try database.connect()
    let tables = try TableCatalog(database.configuration()).storedTables(over: connection)
    let refold = Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
    #expect(try refold.refoldAll(over: connection) == Refold.Counts(checked: 1, changed: 0))
    try connection.execute("TRUNCATE salesforce.account")
    #expect(try refold.refoldAll(over: connection) == Refold.Counts(checked: 1, changed: 1))
    #expect(try run.eye.rows(query) == [row])
  }

  /// `Name` is a text or a record of two parts.
  private static func unionLayout() -> RecordLayout {
    let first = MetadataSlot.count
    let paths = [["Name"], ["Name", "First"], ["Name", "Last"], ["Phone"]]
    return RecordLayout(
      topic: "/data/AccountChangeEvent", schemaID: "union", entity: "Account",
      family: .changeEvent, slotCount: first + 5, fieldOrder: Array(first + 1..<first + 5),
      columns: paths.enumerated().map { index, path in
        Column(
          name: path.joined(separator: "_"), path: path, content: .slot(first + 1 + index, .string))
      }, compounds: [RecordLayout.Compound(slot: first, path: ["Name"])])
  }

  @Test("A field that is a scalar or a record has one of the two, and the other becomes null")
  func unions() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    let (name, first, last, phone) = (
      MetadataSlot.count + 1, MetadataSlot.count + 2, MetadataSlot.count + 3, MetadataSlot.count + 4
    )
    // Values, and the row after each; the lists name what the service names.
    let steps: [(fields: [Int: TestCell], row: [String])] = [
      ([name: .text("Acme"), phone: .text("1")], ["Acme", "-", "-", "1"]),
      ([first: .text("Ada"), last: .text("L")], ["-", "Ada", "L", "1"]),
      ([first: .text("Eva")], ["-", "Eva", "L", "1"]),
      ([phone: .text("2")], ["-", "Eva", "L", "2"]),
      ([name: .text("Acme")], ["Acme", "-", "-", "2"]),
      ([last: .null], ["Acme", "-", "-", "2"]),
      ([name: .null], ["-", "-", "-", "2"]),
    ]
    let query = "SELECT name, name_first, name_last, phone FROM salesforce.account"
    for (ordinal, step) in steps.enumerated() {
      try self.write(
        ordinal == 0 ? "CREATE" : "UPDATE", Self.unionLayout(), Int64(ordinal), step.fields,
        [MetadataSlot.changedFields: .slots(Array(step.fields.keys))], to: run.sink)
      try run.commit()
      #expect(try run.eye.rows(query) == [step.row], "step \(ordinal)")
    }
    let connection = try database.connect()
    let tables = try TableCatalog(database.configuration()).storedTables(over: connection)
    let refold = Refold(history: tables[0].history, current: tables[0].current, delete: .mark)
    #expect(try refold.refoldAll(over: connection) == Refold.Counts(checked: 1, changed: 0))
    // All at once, as after a backlog.
    let second = try SinkRun(try await TestDatabase())
    try second.sink.open(creating: [:])
    for (ordinal, step) in steps.dropLast(2).enumerated() {
      try self.write(
        ordinal == 0 ? "CREATE" : "UPDATE", Self.unionLayout(), Int64(ordinal), step.fields,
        [MetadataSlot.changedFields: .slots(Array(step.fields.keys))], to: second.sink)
    }
    try second.commit()
    #expect(try second.eye.rows(query) == [steps[4].row])
  }
}
