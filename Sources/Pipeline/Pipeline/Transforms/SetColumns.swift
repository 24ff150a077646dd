internal import Bytes
internal import CEL
public import JSON

/// Adds columns, or gives columns other values:
/// `{"type": "set", "columns": {"Region": "has(row.BillingCountry) ? row.BillingCountry : 'unknown'"}}`.
///
/// All expressions see the row as it enters the stage. A result is absent if it depends on a field
/// that the event lacks. So an update changes the column only if it changes the fields that the
/// column is computed from.
public final class SetColumns: ConfiguredTransform {
  /// What the column `name` becomes.
  enum Source {
    case expression(StageExpression, type: ResultType?)
    case text(String)
    case run(RunValue)
  }

  /// Values of the run that a column can have.
  enum RunValue: String, CaseIterable { case pipeline, org }

  public static let type = "set"
  public static let schemaDescription =
    "Adds columns or replaces their values by those of CEL expressions, by constants, or by values "
    + "of the run."
  public static var schemaMembers: [JSONSchema.Member] {
    [
      .required(
        "columns", .map(of: .reference("setColumn"), minCount: 1),
        "Maps the name of each column to its expression."),
      ColumnNames.missingSchemaMember,
    ]
  }

  private let sources: [(name: String, source: Source)]
  private let columns: ColumnNames
  private var run = RunValues(pipeline: "", org: "")
  private var plans = LayoutCache<SetPlan>()
  /// Texts made for the current row.
  private var buffer = ByteBuffer(capacity: 256)
  private var cells: [ResultColumn.Cell] = []

  public init?(reading reader: JSONReader) {
    let missing: ColumnNames.Missing? = reader.choice("missing", called: "choice")
    guard let members = reader.object("columns", required: true) else { return nil }
    var sources: [(name: String, source: Source)] = []
    for member in members.value.members ?? [] where member.name != "//" {
      if member.name.isEmpty { members.report(member.name, "a column needs a name") }
      if let source = Self.source(reading: members, member) {
        sources.append((member.name, source))
      }
    }
    if (members.value.members ?? []).allSatisfy({ $0.name == "//" }) {
      reader.report("columns", "does not name a column")
    }
    self.sources = sources
    let expressions = sources.compactMap(\.source.expression)
    self.columns = ColumnNames(expressions.flatMap(\.names), missing: missing)
  }

  private static func source(reading reader: JSONReader, _ member: JSONMember) -> Source? {
    if member.value.members == nil {
      return StageExpression(reading: reader, member.name, required: true).map {
        .expression($0, type: nil)
      }
    }
    guard let object = reader.object(member.name, required: true) else { return nil }
    defer { object.finish() }
    let members = ["expression", "constant", "run"].filter { object.has($0) }
    guard members.count == 1 else {
      reader.report(member.name, "needs one of 'expression', 'constant' and 'run'")
      return nil
    }
    if object.has("run") {
      let value: RunValue? = object.choice("run", called: "value of the run", required: true)
      return value.map { .run($0) }
    }
    if object.has("constant") { return Self.constant(object) }
    let type: ResultType? = object.choice("type", called: "type")
    return StageExpression(reading: object, "expression", required: true).map {
      .expression($0, type: type)
    }
  }

  private static func constant(_ object: JSONReader) -> Source? {
    guard let value = object.any("constant", required: true) else { return nil }
    let text: String
    switch value.content {
    case .string(let constant): return .text(constant)
    case .boolean(let constant): text = constant ? "true" : "false"
    case .number(let constant): text = constant
    case .null, .array, .object:
      object.report("constant", "expected a string, a number, true or false")
      return nil
    }
    do throws(CELError) {
      return .expression(try StageExpression(text), type: nil)
    } catch {
      object.report("constant", "\(error)")
      return nil
    }
  }

  public var namedColumns: NamedColumns? {
    self.columns.named(by: Self.type, at: self.sources.compactMap(\.source.expression))
  }
  public var readsAcrossColumns: Bool { self.changesRows }
  public var changesRows: Bool { self.sources.contains { $0.source.expression != nil } }
  public func begin(_ run: RunValues) { self.run = run }

  public func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    let plan = try SetPlan(self.sources, run: self.run, layout: input)
    try plan.output.checkNames(stage: Self.type)
    self.plans.insert(plan, for: plan.output)
    return plan.output
  }

  public func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  public func apply(to batch: RecordBatch) throws {
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
  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    let result: JSONSchema.Member = .optional(
      "type", .choice(of: ResultType.self),
      "Type of the column; without it that of the expression.")
    let forms: [JSONSchema] = [
      .text(minLength: 1).described("CEL expression over the columns that enter the stage."),
      .object([
        .required("expression", .text(minLength: 1), "CEL expression."), result,
      ]),
      .object([.required("constant", .scalar(), "String, number, true or false.")]),
      .object([
        .required(
          "run", .choice(of: RunValue.self),
          "pipeline: the name of the pipeline; org: the ID of the org.")
      ]),
    ]
    return [("setColumn", .oneOf(forms))]
  }
}
