import Pipeline
import PostgresClient
import PostgresSink
import TestSupport

extension RecordBatch {
  /// Adds a change event of one row.
  func addChange(
    _ type: String, _ recordID: String, ordinal: Int64, kind: EventKind = .change,
    eventID: String? = nil, commitTimestamp: Int64? = 1_771_300_995_000,
    metadata: [Int: TestCell] = [:], _ fields: [Int: TestCell] = [:]
  ) {
    let eventID = eventID ?? "event-\(ordinal)"
    var cells: [Int: TestCell] = [
      MetadataSlot.replayID: .text("0000\(ordinal)"), MetadataSlot.eventID: .text(eventID),
      MetadataSlot.kind: .integer(Int64(kind.rawValue)),
      MetadataSlot.entity: .text(self.layout.entity),
    ]
    if self.layout.family == .changeEvent {
      cells[MetadataSlot.changeType] = .text(type)
      cells[MetadataSlot.recordID] = .text(recordID)
      cells[MetadataSlot.commitNumber] = .text("1709303151782928388")
      cells[MetadataSlot.commitUser] = .text("005USER")
      cells[MetadataSlot.transactionKey] = .text("tx-1")
      cells[MetadataSlot.sequenceNumber] = .integer(1)
      cells[MetadataSlot.changeOrigin] = .text("")
      cells[MetadataSlot.changedFields] = .slots([])
      cells[MetadataSlot.nulledFields] = .slots([])
      cells[MetadataSlot.diffFields] = .slots([])
      if let commitTimestamp { cells[MetadataSlot.commitTimestamp] = .integer(commitTimestamp) }
    }
    cells.merge(metadata) { _, new in new }
    cells.merge(fields) { _, new in new }
    let row = self.addRow(cells)
    self.events.append(
      Event(
        firstRow: row, rowCount: 1, replayID: Range(offset: 0, count: 0),
        eventID: Range(cell: self.row(row).cells[MetadataSlot.eventID]),
        commitTimestamp: commitTimestamp, kind: kind, ordinal: ordinal))
  }
}

extension Column {
  /// A field of the schema in the given place behind the metadata.
  init(
    _ name: String, _ place: Int, _ type: ColumnType, salesforceType: String? = nil,
    fieldID: String? = nil
  ) {
    self.init(
      name: name, path: [name], content: .slot(MetadataSlot.count + place, type),
      salesforceType: salesforceType)
    self.fieldID = fieldID
  }
}

extension RecordLayout {
  /// A layout whose fields have slots in the order of the schema.
  static func test(
    _ columns: [Column], entity: String = "Opportunity", schemaID: String = "schema-1",
    family: Family = .changeEvent, slotCount: Int? = nil
  ) -> RecordLayout {
    let slotCount = slotCount ?? MetadataSlot.count + columns.count
    return RecordLayout(
      topic: family == .changeEvent ? "/data/\(entity)ChangeEvent" : "/event/\(entity)",
      schemaID: schemaID, entity: entity, family: family, slotCount: slotCount,
      fieldOrder: Array(MetadataSlot.count..<slotCount), columns: columns)
  }
}

extension RowBuffer {
  /// Copies all rows into a history table.
  func copy(to table: TableDefinition, over connection: PostgresConnection) throws {
    let fixed = TableDefinition.fixedColumns(.history).dropLast().map(\.name)
    let columns = (fixed + table.dataColumns.map(\.name)).map { SQLIdentifier.quoted($0) }
    let sql =
      "COPY \(table.qualifiedName) (\(columns.joined(separator: ", "))) FROM STDIN (FORMAT binary)"
    try connection.copyIn(sql) { writer in
      try self.bytes.withUnsafeBufferPointer { bytes in
        for row in self.rows {
          try writer.row(fieldCount: row.metadataFieldCount + self.columnCount)
          try writer.raw(UnsafeBufferPointer(rebasing: bytes[row.metadata]))
          for column in 0..<self.columnCount {
            if let cell = self.cell(of: row, column), !cell.isNull {
              let start = Int(cell.offset)
              try writer.value(
                UnsafeBufferPointer(rebasing: bytes[start..<start + Int(cell.count)]))
            } else {
              try writer.nulls(1)
            }
          }
        }
      }
    }
  }

  /// Nil when the event does not hold the column.
  func cell(_ row: Int, _ column: Int) -> Cell? { self.cell(of: self.rows[row], column) }

  private func cell(of row: Row, _ column: Int) -> Cell? {
    self.cells[row.cells].first { $0.column == column }
  }

  func text(_ range: Range<Int>) -> String { String(decoding: self.bytes[range], as: UTF8.self) }
}
