internal import Bytes
package import JSON

/// Gives columns other types: `{"type": "cast", "columns": {"Amount": "decimal(18,2)"}}`.
///
/// Null stays null and absent stays absent. A value that the type cannot hold sends its event to the dead
/// letters, or becomes null with `"on_error": "null"`.
package final class Cast: ConfiguredTransform {
  /// What happens to a value that cannot be converted.
  enum OnError: String, CaseIterable { case refuse, null }

  package static let type = "cast"
  package static let schemaDescription =
    "Gives columns other types. A value that cannot be converted sends its event to the dead letters."

  package struct Options: KeyedObject, Sendable {
    fileprivate var targets: [String: CastTarget] = [:]
    fileprivate var onError = OnError.refuse
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "columns", \.targets, .targets, "Maps the name of each column to its type.",
          example: ["Amount": "decimal(18,2)"]),
        .key(
          "on_error", \.onError, .choice(called: "choice"),
          "refuse: the event becomes a dead letter; null: the value becomes null."),
        .missing(\.missing),
      ]
    }
  }

  private let targets: [String: CastTarget]
  private let columns: ColumnNames
  private let onError: OnError
  private var plans = LayoutCache<CastPlan>()
  private var buffer = ByteBuffer(capacity: 256)
  private var number = DecimalNumber()

  package init(_ options: Options) {
    self.targets = options.targets
    self.onError = options.onError
    self.columns = ColumnNames(options.targets.keys, missing: options.missing)
  }

  package var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  package var changesRows: Bool { true }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    let plan = try CastPlan(self.targets, layout: input)
    self.plans.insert(plan, for: plan.output)
    return plan.output
  }

  package func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  package func apply(to batch: RecordBatch) throws {
    guard let plan = self.plans[batch.layout] else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    for (index, event) in batch.events.enumerated() {
      for row in event.firstRow..<event.firstRow + event.rowCount {
        for column in plan.columns {
          guard let reason = self.cast(column, row: row, of: event, batch) else { continue }
          batch.refuse(event: index, reason: "column '\(column.name)': \(reason)")
        }
      }
    }
  }

  /// - Returns: why the value cannot be converted.
  private func cast(
    _ column: CastPlan.Converted, row number: Int, of event: RecordBatch.Event,
    _ batch: RecordBatch
  ) -> String? {
    let row = batch.row(number)
    guard let cell = row.value(column.slot) else { return nil }
    if row.isDiff(column.slot) {
      if case .text = column.conversion.kind { return nil }
      // Null would be wrong, because a dead letter makes repair read the record again.
      return "it holds the changes of a long text, not the text"
    }
    self.buffer.removeAll()
    switch column.conversion.convert(
      cell, row, lost: batch.nonfinite, &self.buffer, &self.number)
    {
    case .number(let value): row.set(column.slot, to: value)
    case .written:
      let range = batch.append(self.buffer.bytes)
      batch.row(number).set(column.slot, to: range)
    case .failed(let reason):
      row.presence[column.slot] = RecordBatch.Presence.null
      if self.onError == .refuse { return reason }
      var fields = FieldListEdit(of: number, in: batch, RowCharacter(of: event, row))
      fields.note(column.slot, RecordBatch.Presence.null)
    }
    return nil
  }
}
