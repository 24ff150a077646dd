internal import Formulas
internal import PostgresClient

/// The columns of `<table>_formulas`, and what is not translated.
struct FormulasView {
  struct TranslatedColumn {
    var field: String
    var column: ReportingViews.Column
    var sql: String
    var isOfMoment: Bool
  }

  private(set) var columns: [TranslatedColumn] = []
  /// The reason, by field.
  private(set) var refused: [String: String] = [:]
  private let scope: FormulaScope
  private let object: FormulaSources.Object
  private let bookkeeping: Bookkeeping

  static let key = ReportingViews.Column(name: "id", type: "text")

  /// - Parameters:
  ///   - collation: see `FormulaTranslator`.
  init(
    _ object: FormulaSources.Object, _ scope: FormulaScope, style: SQLIdentifier.Style,
    collation: String?, _ bookkeeping: Bookkeeping
  ) {
    self.scope = scope
    self.object = object
    self.bookkeeping = bookkeeping
    var names: Set = [Self.key.name]
    for field in object.fields.values.sorted(by: { $0.name < $1.name }) {
      guard let text = field.formula else { continue }
      let name = SQLIdentifier.name(field.name, style)
      do throws(FormulaRefusal) {
        guard let type = FormulaType(described: field.type) else {
          throw FormulaRefusal("its type is \(field.type)")
        }
        let translation = try FormulaTranslator.translate(
          Formula(text, type, treatsBlankAsZero: field.treatsBlankAsZero), fields: scope,
          collation: collation)
        guard names.insert(name).inserted else {
          throw FormulaRefusal("another column has its name")
        }
        self.columns.append(
          TranslatedColumn(
            field: field.name,
            column: ReportingViews.Column(name: name, type: Self.sqlName(of: type)),
            sql: translation.sql, isOfMoment: translation.isOfMoment))
      } catch {
        self.refused[field.name] = error.reason
      }
    }
  }

  private static func sqlName(of type: FormulaType) -> String {
    let column: PostgresType =
      switch type {
      case .number, .percent: .numeric
      case .boolean: .boolean
      case .date: .date
      case .dateTime: .timestamptz
      case .time: .time
      case .text, .id, .picklist: .text
      case .multiPicklist: .textArray
      }
    return column.sqlName
  }

  mutating func refuse(_ column: TranslatedColumn, _ reason: String) {
    self.columns.removeAll { $0.field == column.field }
    self.refused[column.field] = reason
  }

  /// The columns of the existing view, without the key. They keep their places, also those whose
  /// formula is gone or no longer translated, which have no values then. So grants and other
  /// people's views remain.
  var existing: [ReportingViews.Column] = []

  private var output: [(column: ReportingViews.Column, sql: String)] {
    var rest = self.columns
    var output: [(column: ReportingViews.Column, sql: String)] = []
    for old in self.existing {
      if let place = rest.firstIndex(where: { $0.column.name == old.name }) {
        let column = rest.remove(at: place)
        output.append((column.column, column.sql))
      } else if let type = PostgresType(oid: old.typeOID) {
        output.append((old, "NULL::\(type.sqlName)"))
      }
    }
    return output + rest.map { ($0.column, $0.sql) }
  }

  var viewColumns: [ReportingViews.Column] { [Self.key] + self.output.map(\.column) }

  var query: String {
    let selected = self.output.map { "\($0.sql) AS \(SQLIdentifier.quoted($0.column.name))" }
    let joins = self.scope.joined.map { " \($0.sql)" }.joined()
    let list = (["\(FormulaScope.root).id"] + selected).joined(separator: ", ")
    return
      "SELECT \(list) FROM \(self.bookkeeping.qualified(self.object.table)) AS "
      + "\(FormulaScope.root)\(joins) WHERE \(FormulaScope.root)._deleted_at IS NULL"
  }

  /// The query with one of the columns.
  func query(of column: TranslatedColumn) -> String {
    var view = self
    (view.columns, view.existing) = ([column], [])
    return view.query
  }

  var comment: String {
    guard !self.refused.isEmpty else { return "Formulas, computed from the copy" }
    let reasons = self.refused.sorted { $0.key < $1.key }.map { "\($0): \($1)" }
    return "Formulas, computed from the copy. Not translated: "
      + String(reasons.joined(separator: "; ").prefix(8000))
  }
}
