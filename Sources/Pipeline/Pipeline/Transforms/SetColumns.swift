internal import Bytes
internal import CEL
package import JSON

/// Adds columns, or gives columns other values:
/// `{"type": "set", "columns": {"Region": "has(row.BillingCountry) ? row.BillingCountry : 'unknown'"}}`.
///
/// All expressions see the row as it enters the stage. A result is absent if it depends on a field
/// that the event lacks. So an update changes the column only if it changes the fields that the
/// column is computed from.
package final class SetColumns: ConfiguredTransform {
  /// What the column `name` becomes.
  enum Source {
    case expression(StageExpression, type: ResultType?)
    case text(String)
    case run(RunValue)
  }

  /// Values of the run that a column can have.
  enum RunValue: String, CaseIterable { case pipeline, org }

  package static let type = "set"
  package static let schemaDescription =
    "Adds columns or replaces their values by those of CEL expressions, by constants, or by values "
    + "of the run."

  package struct Options: KeyedObject, Sendable {
    fileprivate var columns: [(name: String, value: ColumnOptions)] = []
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "columns", \.columns, .setColumns, "Maps the name of each column to its expression.",
          example: ["Region": "has(row.BillingCountry) ? row.BillingCountry : 'unknown'"]),
        .missing(\.missing),
      ]
    }
  }

  private let sources: [(name: String, source: Source)]
  private let columns: ColumnNames
  private var run = RunValues(pipeline: "", org: "")
  private var plans = LayoutCache<SetPlan>()
  /// Texts made for the current row.
  private var buffer = ByteBuffer(capacity: 256)
  private var cells: [ResultColumn.Cell] = []

  package init(_ options: Options) {
    self.sources = options.columns.compactMap { name, value in value.source.map { (name, $0) } }
    let expressions = self.sources.compactMap(\.source.expression)
    self.columns = ColumnNames(expressions.flatMap(\.names), missing: options.missing)
  }

  package var namedColumns: NamedColumns? {
    self.columns.named(by: Self.type, at: self.sources.compactMap(\.source.expression))
  }
  package var readsAcrossColumns: Bool { self.changesRows }
  package var changesRows: Bool { self.sources.contains { $0.source.expression != nil } }
  package func begin(_ run: RunValues) { self.run = run }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    let plan = try SetPlan(self.sources, run: self.run, layout: input)
    try plan.output.checkNames(stage: Self.type)
    self.plans.insert(plan, for: plan.output)
    return plan.output
  }

  package func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  package func apply(to batch: RecordBatch) throws {
    guard let plan = self.plans[batch.layout] else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    for (index, event) in batch.events.enumerated() {
      for number in event.firstRow..<event.firstRow + event.rowCount {
        if event.kind.isOfWholeObject {
          for step in plan.steps {
            batch.row(number).presence[step.slot] = RecordBatch.Presence.absent
          }
          continue
        }
        if let reason = self.set(plan, row: number, event, batch) {
          batch.refuse(event: index, reason: reason)
          break
        }
      }
    }
  }

  /// - Returns: why the row cannot be computed.
  private func set(
    _ plan: SetPlan, row number: Int, _ event: RecordBatch.Event, _ batch: RecordBatch
  ) -> String? {
    self.buffer.removeAll()
    self.cells.removeAll(keepingCapacity: true)
    let row = batch.row(number)
    let character = RowCharacter(of: event, row)
    for step in plan.steps {
      let value = step.expression.value(row, character, of: batch)
      if case .failure(let failure) = value, failure.reason != .absent {
        return "column '\(step.name)': \(step.expression.reason(failure))"
      }
      let cell = step.result.cell(value, of: batch, &self.buffer)
      guard batch.byteCount + self.buffer.count <= RecordBatch.maxStagedByteCount else {
        // Memory that one large event needed is not kept for later events.
        self.buffer = ByteBuffer()
        return
          "column '\(step.name)': the rows of this event and of those before it would have more "
          + "than \(RecordBatch.maxStagedByteCount >> 20) MiB; set fewer or shorter texts"
      }
      if case .failed(let reason) = cell { return "column '\(step.name)': \(reason)" }
      self.cells.append(cell)
    }
    let made = batch.append(self.buffer.bytes)
    var fields = FieldListEdit(of: number, in: batch, character)
    for (step, cell) in zip(plan.steps, self.cells) {
      let row = batch.row(number)
      switch cell {
      case .absent, .failed: row.presence[step.slot] = RecordBatch.Presence.absent
      // In a full image, null is stored as absent.
      case .null:
        row.presence[step.slot] =
          character.isPartial ? RecordBatch.Presence.null : RecordBatch.Presence.absent
      case .number(let number): row.set(step.slot, to: number)
      case .range(let range): row.set(step.slot, to: range)
      case .written(let range):
        row.set(
          step.slot,
          to: RecordBatch.Range(offset: made.offset + range.lowerBound, count: range.count))
      }
      fields.note(step.slot, row.presence[step.slot])
    }
    return nil
  }
}

extension SetColumns.Source {
  var expression: StageExpression? {
    if case .expression(let expression, _) = self { expression } else { nil }
  }
}

extension SetColumns {
  /// A column as its value in the file means it.
  fileprivate struct ColumnOptions: KeyedObject {
    var expression: ExpressionText?
    var type: ResultType?
    var text: String?
    var run: RunValue?

    static var keys: [Key<Self>] {
      [
        .key(
          "expression", \.expression, .expression, "CEL expression.", example: "Amount * 1.19"),
        .key(
          "type", \.type, .choice(called: "type"),
          "Type of the column; without it that of the expression."),
        .noted("constant", .constant, "String, number, true or false.", example: "EMEA"),
        .key(
          "run", \.run, .choice(called: "value of the run"),
          "pipeline: the name of the pipeline; org: the ID of the org."),
      ]
    }

    /// One for each of the things that a column can be.
    static var forms: [[KeyDeclaration]] {
      let keys = Self.declarations
      return [[keys[0].alone, keys[1]], [keys[2].alone], [keys[3].alone]]
    }

    mutating func check(_ reader: JSONReader) {
      if reader.has("type"), !reader.has("expression") {
        reader.report("type", "belongs to \"expression\"")
      }
      guard let value = reader.any("constant") else { return }
      switch value.content {
      case .string(let text): self.text = text
      case .boolean(let flag): self.expression = try? ExpressionText(flag ? "true" : "false")
      case .number(let text): self.expression = try? ExpressionText(text)
      case .null, .array, .object: break
      }
    }

    /// Nil only if that has been reported.
    var source: Source? {
      self.expression.map { .expression(StageExpression($0), type: self.type) }
        ?? self.text.map { .text($0) } ?? self.run.map { .run($0) }
    }
  }

  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    let text = JSONSchema.text(minLength: 1)
      .described("CEL expression over the columns that enter the stage.")
    return [("setColumn", .oneOf([text] + ColumnOptions.forms.map { .object($0) }))]
  }
}

extension Kind<JSONValue> {
  fileprivate static var constant: Self {
    Self(.scalar()) { reader, name, _ in
      guard let value = reader.any(name) else { return nil }
      switch value.content {
      case .string, .boolean: break
      case .number(let text):
        do throws(CELError) {
          _ = try ExpressionText(text)
        } catch {
          reader.report(name, "\(error)")
        }
      case .null, .array, .object:
        reader.report(name, "expected a string, a number, true or false")
      }
      return value
    }
  }
}

extension Kind<[(name: String, value: SetColumns.ColumnOptions)]> {
  fileprivate static var setColumns: Self {
    Self(
      .map(of: .reference("setColumn"), minCount: 1), objects: SetColumns.ColumnOptions.forms
    ) { reader, name, _ in
      guard let (columns, members) = reader.columns(name) else { return nil }
      return members.compactMap { member in
        if member.name.isEmpty { columns.report(member.name, "a column needs a name") }
        var value = SetColumns.ColumnOptions()
        if member.value.members == nil {
          value.expression = Kind<ExpressionText>.expression.read(columns, member.name, true)
          return (member.name, value)
        }
        guard let object = columns.object(member.name) else { return nil }
        guard ["expression", "constant", "run"].count(where: object.has) == 1 else {
          columns.report(member.name, "needs one of 'expression', 'constant' and 'run'")
          return nil
        }
        return object.read(SetColumns.ColumnOptions.keys).map { (member.name, $0) }
      }
    }
  }
}
