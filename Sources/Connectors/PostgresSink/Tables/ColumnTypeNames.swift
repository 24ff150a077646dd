package import Pipeline

/// A stage that changes nothing and observes which columns `column_types` names.
package final class ColumnTypeNames: Transform {
  private let names: Set<String>
  private var unseen: Set<String>
  private var known: Set<String> = []

  package init(_ configuration: PostgresSinkConfiguration) {
    self.names = Set(configuration.columnTypes.keys)
    self.unseen = self.names
  }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    for column in input.columns where !column.isMetadata {
      let keys = TableMapping.typeKeys(of: column, input.entity)
      self.unseen.subtract(keys)
      self.known.formUnion(keys)
    }
    return input
  }

  package var namedColumns: NamedColumns? {
    var columns = NamedColumns(
      type: "column_types", names: self.names, unmatched: self.unseen, isAllowed: false,
      known: self.known)
    columns.isOfStage = false
    return columns
  }
}
