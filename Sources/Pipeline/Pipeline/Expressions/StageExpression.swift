internal import CEL
internal import JSON

/// An expression as the pipeline file has it, checked as far as that is possible without columns.
struct ExpressionText: Sendable {
  private(set) var source = ""
  private(set) var names: Set<String> = []
  /// Whether the expression uses `row` as a whole, and so every column.
  private(set) var readsWholeRow = false
  /// The place where each name first occurs: `line 1, column 12`.
  private(set) var places: [String: String] = [:]

  /// No expression, until one is read.
  init() {}

  /// - Throws: `CELError` for a mistake that can be found without a layout.
  init(_ source: String) throws(CELError) {
    let draft = try CompiledExpression(
      source, scope: ExpressionScope(columns: [], acceptsUnknown: true))
    self.source = source
    self.names = Set(draft.unknownNames.map(\.name))
    self.readsWholeRow = draft.readsWholeRow
    self.places = Dictionary(
      draft.unknownNames.map {
        ($0.name, "line \($0.position.line), column \($0.position.column)")
      },
      uniquingKeysWith: { first, _ in first })
  }
}

extension Kind<ExpressionText> {
  static var expression: Self {
    Kind<String>.string(.text(minLength: 1)).parsed { try ExpressionText($0) }
  }
}

/// An expression of a stage's configuration.
///
/// Names refer to columns as earlier stages leave them. A column that this layout lacks but another
/// layout has counts as absent; one that no layout has is reported, as for stages that list columns
/// (`ColumnNames`).
final class StageExpression {
  private let text: ExpressionText
  private var compiled = LayoutCache<RowExpression>()

  init(_ text: ExpressionText) { self.text = text }

  var source: String { self.text.source }
  var names: Set<String> { self.text.names }
  var places: [String: String] { self.text.places }

  /// The expression for rows of a layout.
  ///
  /// - Parameters:
  ///   - stage: the kind of stage, for messages: `filter`.
  ///   - fields: the layout's fields, shared if the stage has several expressions.
  /// - Throws: `TransformError` for a type error.
  func compiled(
    for layout: RecordLayout, stage: String, fields: LayoutFields? = nil
  ) throws -> RowExpression {
    if let known = self.compiled[layout] { return known }
    do throws(CELError) {
      let expression = try RowExpression(
        self.source, columns: layout.columns.filter { self.canName($0.name) },
        fields: fields ?? LayoutFields(layout))
      self.compiled.insert(expression, for: layout)
      return expression
    } catch {
      throw self.error(error.description, layout, stage: stage)
    }
  }

  /// Whether the expression may contain the name. In an expression, only the first word of a dotted
  /// name is a name. Type names and `row` always count, because the expression was first read
  /// without columns.
  private func canName(_ column: String) -> Bool {
    if self.text.readsWholeRow || self.names.contains(column) || column == "row" { return true }
    if TypeName(rawValue: column) != nil { return true }
    guard let dot = column.firstIndex(of: "."), dot > column.startIndex else { return false }
    let word = String(column[..<dot])
    return self.names.contains(word) || TypeName(rawValue: word) != nil || word == "row"
  }

  /// - Throws: `TransformError` for a type error, or if the expression cannot be a condition.
  func checkIsCondition(for layout: RecordLayout, stage: String) throws {
    let expression = try self.compiled(for: layout, stage: stage)
    switch expression.program.type {
    case .bool, .dyn, .null: break
    case let type:
      throw self.error(
        "the expression yields \(type); a condition has to yield bool", layout, stage: stage)
    }
  }

  /// The result of the expression, as a condition, for rows of which only some columns are known.
  enum Outlook { case always, perhaps, never }

  /// - Parameter known: texts by column; the row may hold anything else, or nothing.
  func outlook(_ known: [String: String]) -> Outlook {
    let columns = self.names.sorted()
    let scope = ExpressionScope(columns: columns.map { .init($0, .dyn) })
    // Type mistakes are ignored here; they are reported with a layout.
    guard let program = try? CompiledExpression(self.source, scope: scope),
      !program.readsWholeRow
    else { return .perhaps }
    let frame = Frame(program)
    let arena = ByteArena()
    for (index, name) in columns.enumerated() {
      frame.set(index, to: known[name].map { .string(arena.store($0)) } ?? .unknown)
    }
    switch frame.evaluate() {
    case .bool(let isTrue): return isTrue ? .always : .never
    case .null: return .never
    default: return .perhaps
    }
  }

  func error(_ message: String, _ layout: RecordLayout, stage: String) -> TransformError {
    TransformError(
      .expression, "stage \(stage): \(self.shown): \(message) (\(layout.origin))")
  }

  /// The expression in quotes, truncated if it is long.
  var shown: String {
    let words = self.source.split(whereSeparator: \.isNewline).joined(separator: " ")
    return words.count > 120 ? "'\(words.prefix(120))…'" : "'\(words)'"
  }
}
