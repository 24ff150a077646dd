internal import CEL
package import JSON

/// Keeps the rows for which an expression is true:
/// `{"type": "filter", "where": "StageName == 'Closed Won' && Amount >= 1000.0"}`.
///
/// A condition on values selects changes, not records: an update that does not carry a field of the
/// condition is kept or dropped by `absent`. Ordering against null counts as false, as in SQL; any
/// other failure of the expression sends the event to the dead letters. Lines about a whole object
/// (overflow, wildcard) are always kept.
package final class Filter: ConfiguredTransform {
  /// What happens to a row when a missing field decides the condition.
  enum Absent: String, CaseIterable { case keep, drop }

  package static let type = "filter"
  package static let schemaDescription =
    "Keeps the rows for which a CEL expression is true. A condition on values selects changes, not "
    + "records: most updates carry a few fields only."

  package struct Options: KeyedObject, Sendable {
    fileprivate var condition = ExpressionText()
    fileprivate var absent = Absent.keep
    fileprivate var keepsReads = true
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "where", \.condition, .expression,
          "Expression of type bool over the columns as left by the stages before.",
          example: "StageName == 'Closed Won' && Amount >= 1000.0"),
        .key(
          "absent", \.absent, .choice(called: "choice"),
          "What happens to a row that lacks a field that the condition needs."),
        .snapshot(\.keepsReads),
        .missing(\.missing),
      ]
    }
  }

  private let options: Options
  private let condition: StageExpression
  private let columns: ColumnNames

  package init(_ options: Options) {
    self.options = options
    self.condition = StageExpression(options.condition)
    self.columns = ColumnNames(options.condition.names, missing: options.missing)
  }

  package var namedColumns: NamedColumns? {
    self.columns.named(by: Self.type, at: [self.condition])
  }
  package var readsAcrossColumns: Bool { self.changesRows }
  package var changesRows: Bool { true }
  package var leavesOutRows: Bool { true }
  package var conditionNames: Set<String> { self.columns.names }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    try self.condition.checkIsCondition(for: input, stage: Self.type)
    return input
  }

  package func bringsRows(of input: RecordLayout) -> Bool {
    self.condition.outlook(input.knownTexts) != .never
  }

  package func condition(for output: RecordLayout) throws -> StageCondition? {
    try self.condition.compiled(for: output, stage: Self.type).condition(
      keepsReads: self.options.keepsReads)
  }

  package func apply(to batch: RecordBatch) throws {
    let expression = try self.condition.compiled(for: batch.layout, stage: Self.type)
    batch.keepRows { row, event in
      let character = RowCharacter(of: batch.events[event], row)
      if character.kind.isOfWholeObject { return true }
      let verdict = RowCondition.verdict(expression, row, character, of: batch)
      switch verdict {
      case .holds(let isTrue): return isTrue
      case .absent:
        if character.kind == .snapshot, expression.readsChange { return self.options.keepsReads }
        return self.options.absent == .keep
      case .failed(let reason):
        batch.refuse(event: event, reason: reason)
        return true
      }
    }
  }
}

extension Key where Object: KeyedObject {
  static func snapshot(_ property: WritableKeyPath<Object, Bool>) -> Self {
    .key(
      "snapshot", property, .bool,
      "Whether records that were read pass conditions on how, by whom and from where they were "
        + "changed.")
  }
}

/// A condition for one row.
enum RowCondition {
  case holds(Bool)
  /// A column that the row lacks decides the condition.
  case absent
  /// The condition failed, for this reason.
  case failed(String)

  static func verdict(
    _ expression: RowExpression, _ row: RecordBatch.Row, _ character: RowCharacter,
    of batch: RecordBatch
  ) -> Self {
    switch expression.value(row, character, of: batch) {
    case .bool(let isTrue): return .holds(isTrue)
    case .failure(let failure):
      switch failure.reason {
      case .absent: return .absent
      case .nullOrdering: return .holds(false)
      default: return .failed(expression.reason(failure))
      }
    // As in SQL, a condition that yields null does not hold.
    case .null: return .holds(false)
    case let value:
      return .failed("the condition yields \(value.typeName?.rawValue ?? "no value"), not bool")
    }
  }
}
