import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("COPY rows: metadata") struct CopyEncoderMetadataTests {
  private let first = MetadataSlot.count

  private func tables(
    for layout: RecordLayout, _ change: (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) throws -> LayoutTables {
    // Without a server: as if all columns had just been made.
    var configuration = PostgresSinkConfiguration(connection: .init(url: ""))
    change(&configuration)
    let mapping = try TableMapping(layout, configuration)
    let columns = mapping.fields.map { TableColumn(name: $0.name, type: $0.type, path: $0.path) }
    return LayoutTables(
      history: nil, current: nil, dataColumns: columns, columnIndices: Array(columns.indices))
  }

  private func encode(
    _ batch: RecordBatch, _ tables: LayoutTables, columnCount: Int? = nil
  ) throws -> RowBuffer {
    let encoder = CopyEncoder(layout: batch.layout, tables: tables)
    var buffer = RowBuffer(columnCount: columnCount ?? tables.dataColumns.count)
    for event in batch.events.indices { try encoder.append(event: event, of: batch, to: &buffer) }
    return buffer
  }

  @Test("Absent, null and value stay distinct, in the order of the table")
  func presence() throws {
    let layout = RecordLayout.test([
      Column("A", 0, .string), Column("B", 1, .int32), Column("C", 2, .string),
      Column("D", 3, .string),
    ])
    var tables = try self.tables(for: layout)
    // The table has D first, no place for B, and a column that the layout lacks.
    tables.dataColumns = [
      TableColumn(name: "d", type: .text, path: "D"),
      TableColumn(name: "x", type: .text, path: "X"),
      TableColumn(name: "a", type: .text, path: "A"),
      TableColumn(name: "c", type: .text, path: "C"),
    ]
    tables.columnIndices = [2, nil, 3, 0]
    let batch = RecordBatch(layout: layout)
    batch.addChange(
      "UPDATE", "006A", ordinal: 7,
      metadata: [
        MetadataSlot.changedFields: .slots([first, first + 1, first + 3]),
        MetadataSlot.nulledFields: .slots([first]), MetadataSlot.diffFields: .slots([first + 3]),
      ], [first: .null, first + 1: .integer(5), first + 3: .text("dd")])
    let buffer = try self.encode(batch, tables, columnCount: 5)
    // In the order of the table, not of the slots, and nothing for what the event does not hold.
    #expect(buffer.cells.map(\.column) == [0, 2])
    let d = try #require(buffer.cell(0, 0))
    #expect(buffer.text(Int(d.offset)..<Int(d.offset) + Int(d.count)) == "dd" && d.isDiff)
    let a = try #require(buffer.cell(0, 2))
    #expect(a.isNull && !a.isDiff)
  }

  @Test(
    "The kind of change follows from the event kind and the change type",
    arguments: [
      ("CREATE", .change, .create), ("UPDATE", .change, .update), ("DELETE", .change, .delete),
      ("UNDELETE", .change, .undelete), ("GAP_CREATE", .gap, .gapCreate),
      ("GAP_UPDATE", .gap, .gapUpdate), ("GAP_DELETE", .gap, .gapDelete),
      ("GAP_UNDELETE", .gap, .gapUndelete), ("GAP_OVERFLOW", .overflow, .overflow),
      ("UPDATE", .wildcard, .wildcard), ("SNAPSHOT", .change, .unknown), ("GAP_X", .gap, .unknown),
      ("", .event, .event),
    ] as [(String, EventKind, RowBuffer.Change)])
  func changes(type: String, kind: EventKind, expected: RowBuffer.Change) throws {
    let layout = RecordLayout.test([Column("A", 0, .string)])
    let batch = RecordBatch(layout: layout)
    batch.addChange(type, "006A", ordinal: 1, kind: kind)
    #expect(try self.encode(batch, self.tables(for: layout)).rows.map(\.change) == [expected])
  }

  @Test("A row carries its position, record and event")
  func rowHeader() throws {
    let layout = RecordLayout.test([Column("A", 0, .string)])
    let batch = RecordBatch(layout: layout)
    batch.epoch = 3
    batch.addChange("CREATE", "006A", ordinal: 41, [first: .text("x")])
    batch.addChange("UPDATE", "006B", ordinal: 42, commitTimestamp: nil)
    let buffer = try self.encode(batch, self.tables(for: layout))
    #expect(buffer.rows.map(\.epoch) == [3, 3] && buffer.rows.map(\.ordinal) == [41, 42])
    #expect(buffer.rows.map { buffer.text($0.recordID) } == ["006A", "006B"])
    #expect(buffer.rows.map { buffer.text($0.eventID) } == ["event-41", "event-42"])
    #expect(buffer.rows.map(\.commitTimestamp) == [1_771_300_995_000, nil])
    #expect(buffer.rows.allSatisfy { $0.metadataFieldCount == CopyEncoder.metadataFieldCount })
  }

  @Test("A change to many records gives one row for each, and the rows share their values")
  func fanOut() throws {
    let layout = RecordLayout.test([Column("A", 0, .string), Column("B", 1, .string)])
    let text = String(repeating: "long ", count: 20_000)
    for isArray in [false, true] {
      let batch = RecordBatch(layout: layout)
      var metadata: [Int: TestCell] = [:]
      if isArray { metadata[MetadataSlot.recordIDs] = .text(#"["006A","006B","006C"]"#) }
      batch.addChange(
        "UPDATE", "006A", ordinal: 1, metadata: metadata, [first: .text(text), first + 1: .null])
      if isArray {
        batch.row(0).presence[MetadataSlot.recordID] = RecordBatch.Presence.absent
      } else {
        let ids = ["006B", "006C"]
        let copy = batch.addCopies(ofRow: 0, count: 2)
        for (index, id) in ids.enumerated() {
          let range = Array(id.utf8).withUnsafeBufferPointer { batch.append($0) }
          batch.row(copy + index).cells[MetadataSlot.recordID] = range.cell
        }
        batch.events[0].rowCount = 3
      }
      let buffer = try self.encode(batch, self.tables(for: layout))
      #expect(buffer.rows.map { buffer.text($0.recordID) } == ["006A", "006B", "006C"])
      #expect(buffer.bytes.count < 2 * text.utf8.count)
      #expect(buffer.cells.count == 2)
      for row in 0..<3 {
        let cell = try #require(buffer.cell(row, 0))
        #expect(buffer.text(Int(cell.offset)..<Int(cell.offset) + Int(cell.count)) == text)
        #expect(buffer.cell(row, 1)?.isNull == true)
      }
    }
  }

  @Test("U+0000 is replaced and counted")
  func replacements() throws {
    let layout = RecordLayout.test([
      Column("A", 0, .string), Column("J", 1, .json), Column("L", 2, .stringList),
    ])
    let batch = RecordBatch(layout: layout)
    batch.addChange(
      "CREATE", "006A", ordinal: 1,
      [
        first: .text("a\u{0}\u{0}"), first + 1: .text(#"["\u0000","\\u0000"]"#),
        first + 2: .text(#"["\u0000"]"#),
      ])
    let encoder = CopyEncoder(layout: layout, tables: try self.tables(for: layout))
    var buffer = RowBuffer(columnCount: 3)
    try encoder.append(event: 0, of: batch, to: &buffer)
    #expect(encoder.replacedCount == 4)
  }

  @Test(
    "History has every metadata column, whatever stages have done to them",
    .enabled(if: PostgresCluster.isAvailable))
  func metadataColumns() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let address = Column(
      name: "BillingAddress", path: ["BillingAddress"],
      content: .record(
        slot: first + 2, scalar: nil,
        children: [
          Column(
            name: "City", path: ["BillingAddress", "City"], content: .slot(first + 3, .string)),
          Column(
            name: "Latitude", path: ["BillingAddress", "Latitude"],
            content: .slot(first + 4, .double)),
        ]))
    // No metadata columns at all: a stage has dropped them.
    let layout = RecordLayout.test(
      [
        Column("StageName", 0, .string),
        Column("Amount", 1, .double, salesforceType: "Data:Currency"), address,
      ],
      slotCount: first + 5)
    let tables = try TableCatalog(database.configuration()).tables(for: layout, over: connection)
    let batch = RecordBatch(layout: layout)
    batch.addChange(
      "UPDATE", "006A", ordinal: 9,
      metadata: [
        MetadataSlot.changedFields: .slots([first + 1, first + 3, first + 4, first]),
        MetadataSlot.nulledFields: .slots([first + 1]), MetadataSlot.diffFields: .slots([first]),
      ],
      [first: .text("diff"), first + 1: .null, first + 2: .record, first + 3: .text("Köln\u{0}")])
    batch.addChange(
      "GAP_UPDATE", "006B", ordinal: 10, kind: .gap,
      metadata: [
        MetadataSlot.commitUser: .null, MetadataSlot.sequenceNumber: .null,
        MetadataSlot.commitNumber: .text("-9223372036854775808"),
      ])
    let buffer = try self.encode(batch, tables)
    let history = try #require(tables.history)
    try buffer.copy(to: history, over: connection)
    let rows = try connection.rows(
      "SELECT \(Self.fixed), stagename, amount, billingaddress, "
        + "_commit_timestamp AT TIME ZONE 'UTC' FROM \(history.qualifiedName) ORDER BY _ordinal")
    #expect(
      rows[0][0..<19] == [
        "1", "9", "/data/OpportunityChangeEvent", "00009", "event-9", "schema-1", "change",
        "Opportunity", "UPDATE", "006A", rows[0][10], "1709303151782928388", "005USER", "tx-1", "1",
        "", "{stagename,amount,billingaddress}", "{amount}", "{stagename}",
      ])
    #expect(rows[0][20...] == ["diff", "-", #"{"City": "Köln�"}"#, "2026-02-17 04:03:15"])
    #expect(rows[1][6...9] == ["gap", "Opportunity", "GAP_UPDATE", "006B"])
    #expect(rows[1][11...15] == ["-9223372036854775808", "-", "tx-1", "-", ""])
    #expect(rows[1][16...18] == ["{}", "{}", "{}"])
  }

  private static let fixed = TableDefinition.fixedColumns(.history).map(\.name)
    .joined(separator: ", ")

  @Test("Platform events have only their own fields", .enabled(if: PostgresCluster.isAvailable))
  func platformEvents() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let layout = RecordLayout.test(
      [
        Column("Id", 0, .string),
        Column(name: "Source", path: ["Source"], content: .constant("web\u{0}")),
      ], entity: "Order__e", family: .platformEvent)
    let tables = try TableCatalog(database.configuration()).tables(for: layout, over: connection)
    #expect(tables.current == nil)
    let batch = RecordBatch(layout: layout)
    batch.addChange("", "", ordinal: 0, kind: .event, commitTimestamp: nil, [first: .text("o-1")])
    let buffer = try self.encode(batch, tables)
    let history = try #require(tables.history)
    #expect(history.name == "order__e_history")
    try buffer.copy(to: history, over: connection)
    let rows = try connection.rows(
      "SELECT \(Self.fixed), id, source FROM \(history.qualifiedName)")
    #expect(
      rows[0][0..<10] == [
        "1", "0", "/event/Order__e", "00000", "event-0", "schema-1", "event", "Order__e", "-", "-",
      ])
    #expect(rows[0][10..<19].allSatisfy { $0 == "-" })
    #expect(rows[0][20...] == ["o-1", "web\u{FFFD}"])
  }
}
