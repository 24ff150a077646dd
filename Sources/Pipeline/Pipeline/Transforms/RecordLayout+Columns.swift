extension RecordLayout {
  /// The member that lists the NaN and infinities that a line writes as `null`.
  private static let reservedNames: Set<String> = ["_nonfinite"]

  /// Throws `TransformError` unless every column has a unique name that lines do not use for
  /// something else.
  ///
  /// - Parameter stage: the stage that made the columns, for the message: `flatten`.
  package func checkNames(stage: String) throws {
    var paths: [String: [String]] = [:]
    for column in self.columns {
      if let other = paths.updateValue(column.path, forKey: column.name) {
        throw TransformError(
          .duplicateColumn,
          "stage \(stage): \(other.dotted) and \(column.path.dotted) would both become column "
            + "'\(column.name)' (\(self.origin)); rename or drop one of them before this stage")
      }
      if Self.reservedNames.contains(column.name) {
        throw TransformError(
          .reservedColumn,
          "stage \(stage): \(column.path.dotted) cannot become column '\(column.name)', which is "
            + "reserved (\(self.origin)); choose another name")
      }
    }
  }

  /// The values of columns that are the same in every row, by name.
  var knownTexts: [String: String] {
    var known: [String: String] = [:]
    for column in self.columns {
      switch column.content {
      case .constant(let text): known[column.name] = text
      case .slot(MetadataSlot.entity, _): known[column.name] = self.entity
      case .slot, .record: break
      }
    }
    return known
  }

  /// The slots that the columns are read from.
  var columnSlots: Set<Int> { self.columns.reduce(into: []) { $0.formUnion($1.slots) } }

  /// `topic /data/AccountChangeEvent, schema i8wg…`, for messages.
  var origin: String { "topic \(self.topic), schema \(self.schemaID)" }
}

extension [String] {
  /// `BillingAddress.City`
  fileprivate var dotted: String { self.joined(separator: ".") }
}
