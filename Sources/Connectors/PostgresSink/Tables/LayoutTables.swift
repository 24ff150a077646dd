/// The tables of an entity, and the columns for the fields of one layout.
package struct LayoutTables: Sendable, Equatable {
  package var history: TableDefinition?
  package var current: TableDefinition?
  /// The data columns of both tables, in the order of `RowBuffer.cells`. The list only grows while
  /// the process runs: rows encoded before a column was added lack its cell.
  package var dataColumns: [TableColumn]
  /// For each field of the layout (`TableMapping.fields`) its place in `dataColumns`; nil for one
  /// that the contract discards.
  package var columnIndices: [Int?]
  /// The changes made in the database, one sentence each, for the log. If there are any, the tables
  /// returned for other layouts of the entity are outdated, because names may have changed.
  package var changes: [String]
  /// Fields left out by contract `discard`, reported once.
  package var discarded: [String]
  /// Renames that could not be followed, one sentence each, reported once in a run.
  package var warnings: [String]
  /// By place in `dataColumns`, the names that lists of the layout's events have for columns whose
  /// present name means another column in events of their schema.
  var listedNames: [Int: String] = [:]

  /// - Parameter column: its place in `dataColumns`.
  func listedName(_ column: Int) -> String {
    self.listedNames[column] ?? self.dataColumns[column].name
  }

  var names: [String] { [self.history, self.current].compactMap(\.?.name) }

  /// SQL names, not quoted, of the columns that the layout's fields have.
  var columnNames: [String] {
    self.columnIndices.compactMap { $0.map { self.dataColumns[$0].name } }
  }

  package init(
    history: TableDefinition?, current: TableDefinition?, dataColumns: [TableColumn],
    columnIndices: [Int?], changes: [String] = [], discarded: [String] = [],
    warnings: [String] = []
  ) {
    self.history = history
    self.current = current
    self.dataColumns = dataColumns
    self.columnIndices = columnIndices
    self.changes = changes
    self.discarded = discarded
    self.warnings = warnings
  }
}
