@testable import Pipeline

/// Writes texts in lower case, so that equal addresses join whatever their case:
/// `{"type": "lower", "columns": ["Email", "*Email__c"]}`.
final class LowerCase: ConfiguredTransform {
  static let type = "lower"
  static let schemaDescription = "Writes the letters A to Z of text columns in lower case."

  private struct Place {
    var name: String
    var slot: Int
  }

  private let columns: ColumnNames
  /// Where the columns are, compiled once per layout.
  private var plans = LayoutCache<[Place]>()

  init(_ options: ColumnNames.Options) { self.columns = ColumnNames(options) }

  var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }
  var changesRows: Bool { true }

  func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    var plan: [Place] = []
    for column in input.columns where self.columns.contains(column) {
      guard !column.isMetadata, case .slot(let slot, .string) = column.content else {
        throw TransformError(
          .columnType,
          "stage \(Self.type): column '\(column.name)' is not a field of type string "
            + "(\(input.origin)); name such fields only")
      }
      plan.append(Place(name: column.name, slot: slot))
    }
    self.plans.insert(plan, for: input)
    return input
  }

  func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  func apply(to batch: RecordBatch) throws {
    guard let plan = self.plans[batch.layout] else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    for (index, event) in batch.events.enumerated() {
      for row in event.firstRow..<event.firstRow + event.rowCount {
        for place in plan where !self.lower(place.slot, row, batch) {
          batch.refuse(event: index, reason: "column '\(place.name)': the batch has no room")
        }
      }
    }
  }

  /// - Returns: false when the text does not fit.
  private func lower(_ slot: Int, _ number: Int, _ batch: RecordBatch) -> Bool {
    let row = batch.row(number)
    // Absent and null stay as they are.
    guard let cell = row.value(slot) else { return true }
    if row.isDiff(slot) {
      // A diff applies to the original text, which tables no longer have. If it is empty, they have the
      // record read again.
      row.set(slot, to: RecordBatch.Range(offset: 0, count: 0))
      return true
    }
    let text = RecordBatch.Range(cell: cell)
    guard batch.byteCount + text.count <= RecordBatch.maxStagedByteCount else { return false }
    // Reserving may move the arena, so the old bytes are looked up afterwards.
    let place = batch.reserveArena(text.count)
    for (index, byte) in batch.bytes(text).enumerated() {
      let isUpperCase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      place[index] = isUpperCase ? byte | 0x20 : byte
    }
    batch.row(number).set(slot, to: batch.commitArena(text.count))
    return true
  }
}
