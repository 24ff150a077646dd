internal import JSON

/// The columns that an expression can name, each with its type.
///
/// A column is a variable of its own and a member of `row`, unless a column itself is called `row`.
/// Its index is its place in the list; values are given to a `Frame` under it. Every column may be
/// null or absent, whatever its type.
package struct ExpressionScope: Sendable {
  package struct Column: Sendable, Hashable {
    package var name: String
    package var type: CELType

    package init(_ name: String, _ type: CELType) {
      self.name = name
      self.type = type
    }
  }

  package let columns: [Column]
  /// Whether names that are not columns count as columns that no event has. They are listed in
  /// `CompiledExpression.unknownNames`.
  package let acceptsUnknown: Bool
  private let indices: [String: Int]

  /// - Parameter columns: names have to be distinct; of duplicates, the first counts.
  package init(columns: [Column], acceptsUnknown: Bool = false) {
    self.columns = columns
    self.acceptsUnknown = acceptsUnknown
    self.indices = Dictionary(
      columns.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package func index(of name: String) -> Int? { self.indices[name] }

  var hasRow: Bool { self.indices["row"] == nil }
}

/// Names that resemble a misspelt one.
enum NameSuggestion {
  /// `did you mean 'StageName'?`, `the columns are: A, B`, or nothing.
  static func text(for name: String, among names: [String], kind: String) -> String {
    guard !names.isEmpty else { return "" }
    let closest = names.map { (name: $0, distance: editDistance(name, $0)) }
      .min { ($0.distance, $0.name) < ($1.distance, $1.name) }
    if let closest, closest.distance <= Self.limit(name) {
      return "; did you mean '\(closest.name)'?"
    }
    let shown = names.sorted().prefix(12).joined(separator: ", ")
    return "; the \(kind) are: \(shown)\(names.count > 12 ? ", … (\(names.count) in all)" : "")"
  }

  static func hasClose(_ name: String, among names: [String]) -> Bool {
    names.contains { editDistance(name, $0) <= Self.limit(name) }
  }

  /// A third of the letters.
  private static func limit(_ name: String) -> Int { name.utf8.count / 3 }
}
