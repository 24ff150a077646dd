/// The tables of an entity, and where the fields of one layout go in them.
package struct LayoutTables: Sendable, Equatable {
  package var history: TableDefinition?
  package var current: TableDefinition?
  /// The data columns of both tables, in the order of `RowBuffer.cells`. The list only grows while the process runs:
  /// rows encoded before a column was added lack the cells of those behind.
  package var dataColumns: [TableColumn]
  /// For each field of the layout (`TableMapping.fields`) its place in `dataColumns`; nil for one
  /// that the contract discards.
  package var columnIndices: [Int?]
  /// What has been created or changed in the database on this occasion, for the log: one sentence
  /// each. When not empty, what other layouts of the entity were given is out of date: names may
  /// have changed.
  package var changes: [String]
  /// Fields left out by contract `discard`, reported once.
  package var discarded: [String]

  package init(
    history: TableDefinition?, current: TableDefinition?, dataColumns: [TableColumn],
    columnIndices: [Int?], changes: [String] = [], discarded: [String] = []
  ) {
    self.history = history
    self.current = current
    self.dataColumns = dataColumns
    self.columnIndices = columnIndices
    self.changes = changes
    self.discarded = discarded
  }
}
