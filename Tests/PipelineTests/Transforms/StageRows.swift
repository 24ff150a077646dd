import JSON
import Pipeline
import Testing

/// A value of a column in the tests of stages.
enum CellValue: Equatable {
  case absent, null
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case text(String)
}

/// Rows of one layout, written cell by cell, and read again behind stages.
struct StageRows {
  /// One event with one row.
  struct Row {
    var kind = EventKind.change
    var changeType = "UPDATE"
    var cells: [String: CellValue] = [:]
  }

  let layout: RecordLayout
  let batch: RecordBatch

  /// - Parameter columns: names and types; slots follow those of the metadata.
  init(_ columns: [(String, ColumnType)], family: RecordLayout.Family = .changeEvent) {
    let metadata = [
      Column(
        name: "_entity", path: ["_entity"], content: .constant("Account"), isMetadata: true),
      Column(metadata: "_change_type", MetadataSlot.changeType),
      Column(metadata: "_record_id", MetadataSlot.recordID),
      Column(
        name: "_changed_fields", path: ["_changed_fields"],
        content: .slot(MetadataSlot.changedFields, .fieldSet), isMetadata: true),
      Column(
        name: "_nulled_fields", path: ["_nulled_fields"],
        content: .slot(MetadataSlot.nulledFields, .fieldSet), isMetadata: true),
    ]
    let fields = columns.enumerated().map { Column($1.0, MetadataSlot.count + $0, $1.1) }
    let slotCount = MetadataSlot.count + columns.count
    self.layout = RecordLayout(
      topic: "/data/AccountChangeEvent", schemaID: "schema-1", entity: "Account",
      family: family, slotCount: slotCount, fieldOrder: Array(MetadataSlot.count..<slotCount),
      columns: metadata + fields)
    self.batch = RecordBatch(layout: self.layout)
  }

  private func range(_ text: String) -> RecordBatch.Range {
    Array(text.utf8).withUnsafeBufferPointer { self.batch.append($0) }
  }

  func add(_ row: Row) {
    let number = self.batch.addRow()
    let recordID = self.range("001-\(number)")
    let changeType = self.range(row.changeType)
    let isUpdate = row.kind == .change && row.changeType == "UPDATE"
    var changed = [UInt8](repeating: 0, count: (self.layout.slotCount + 7) / 8)
    var nulled = changed
    for column in self.layout.columns where !column.isMetadata {
      guard case .slot(let slot, _) = column.content else { continue }
      let cells = { self.batch.row(number) }
      switch row.cells[column.name] ?? .absent {
      case .absent: continue
      case .null:
        cells().presence[slot] = RecordBatch.Presence.null
        nulled[slot / 8] |= 1 << UInt8(slot % 8)
      case .bool(let value): cells().set(slot, to: value ? 1 : 0)
      case .int(let value): cells().set(slot, to: UInt64(bitPattern: value))
      case .double(let value): cells().set(slot, to: value.bitPattern)
      case .text(let text):
        let range = self.range(text)
        cells().set(slot, to: range)
      }
      changed[slot / 8] |= 1 << UInt8(slot % 8)
    }
    if isUpdate {
      let sets = [changed, nulled].map { $0.withUnsafeBufferPointer { self.batch.append($0) } }
      self.batch.row(number).set(MetadataSlot.changedFields, to: sets[0])
      self.batch.row(number).set(MetadataSlot.nulledFields, to: sets[1])
    }
    self.batch.row(number).set(MetadataSlot.recordID, to: recordID)
    self.batch.row(number).set(MetadataSlot.changeType, to: changeType)
    self.batch.events.append(
      RecordBatch.Event(
        firstRow: number, rowCount: 1, replayID: recordID, eventID: recordID, commitTimestamp: 1,
        kind: row.kind, ordinal: Int64(number)))
  }

  // MARK: Reading

  /// The value of a column of the batch as it is now.
  func value(_ name: String, ofRow number: Int) -> CellValue? {
    guard let column = self.batch.layout.columns.first(where: { $0.name == name }) else {
      return nil
    }
    let row = self.batch.row(number)
    switch column.content {
    case .constant(let text): return .text(text)
    case .record: return nil
    case .slot(let slot, let type):
      guard row.presence[slot] != RecordBatch.Presence.absent else { return .absent }
      guard let cell = row.value(slot) else { return .null }
      switch type {
      case .boolean: return .bool(cell != 0)
      case .int32, .int64, .timestamp: return .int(Int64(bitPattern: cell))
      case .double: return .double(Double(bitPattern: cell))
      default: return .text(String(decoding: row.bytes(cell), as: UTF8.self))
      }
    }
  }

  /// The names that a list of fields has.
  func list(_ slot: Int, ofRow number: Int) -> [String] {
    let bits = self.batch.row(number).text(slot)
    return self.batch.layout.fieldOrder.filter { slot in
      slot / 8 < bits.count && bits[slot / 8] & (1 << UInt8(slot % 8)) != 0
    }.compactMap { slot in
      self.batch.layout.columns.first {
        if case .slot(slot, _) = $0.content { true } else { false }
      }?.name
    }
  }

  func recordIDs() -> [String] {
    (0..<self.batch.rowCount).map { number in
      String(decoding: self.batch.row(number).text(MetadataSlot.recordID), as: UTF8.self)
    }
  }
}

extension StageChain {
  /// A chain of the stages that JSON texts describe.
  convenience init(json texts: [String]) throws {
    let stages = try texts.map { text in
      let mistakes = JSONMistakes()
      let reader = JSONReader(try JSONValue(parsing: text), path: "/stages/0", mistakes: mistakes)
      let stage = try #require(TransformRegistry.stage(reading: reader)?())
      try #require(mistakes.isEmpty, "\(mistakes.all)")
      return stage
    }
    self.init(stages)
    self.begin(RunValues(pipeline: "sales", org: "00D000000000001AAA"))
  }
}
