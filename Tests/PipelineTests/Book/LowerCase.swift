import JSON

@testable import Pipeline

/// Writes texts in lower case, so that equal addresses join whatever their case:
/// `{"type": "lower", "columns": ["Email", "*Email__c"]}`.
final class LowerCase: ConfiguredTransform {
  static let type = "lower"
  static let schemaDescription = "Writes the letters A to Z of text columns in lower case."
  static var schemaMembers: [JSONSchema.Member] {
    [ColumnNames.listSchemaMember, ColumnNames.missingSchemaMember]
  }

  private let columns: ColumnNames
  /// The slots of the columns, compiled once per layout.
  private var slots = LayoutCache<[Int]>()

  init?(reading reader: JSONReader) {
    guard let columns = ColumnNames(listIn: reader) else { return nil }
    self.columns = columns
  }

  var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }
  var changesRows: Bool { true }

  func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    var slots: [Int] = []
    for column in input.columns where self.columns.contains(column) {
      guard case .slot(let slot, .string) = column.content else {
        throw TransformError(
          .castColumn,
          "stage \(Self.type): column '\(column.name)' is not a text (\(input.origin)); name text "
            + "columns only")
      }
      slots.append(slot)
    }
    self.slots.insert(slots, for: input)
    return input
  }

  func knows(_ output: RecordLayout) -> Bool { self.slots[output] != nil }

  func apply(to batch: RecordBatch) throws {
    guard let slots = self.slots[batch.layout] else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    for number in 0..<batch.rowCount {
      for slot in slots {
        let row = batch.row(number)
        // Absent and null stay as they are. So does a diff: it applies to the text of the org.
        guard let cell = row.value(slot), !row.isDiff(slot) else { continue }
        let text = RecordBatch.Range(cell: cell)
        // Reserving may move the arena, so the old bytes are looked up afterwards.
        let place = batch.reserveArena(text.count)
        for (index, byte) in batch.bytes(text).enumerated() {
          let isUpperCase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
          place[index] = isUpperCase ? byte | 0x20 : byte
        }
        batch.row(number).set(slot, to: batch.commitArena(text.count))
      }
    }
  }
}
