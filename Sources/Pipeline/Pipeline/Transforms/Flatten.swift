package import JSON

/// Moves the children of records into the line itself: `{"type": "flatten", "naming": "path"}`.
///
/// The children take the place of their record, in schema order. The scalar branch of a union of a
/// scalar and a record (Account.Name) keeps the record's name and comes first. The stage costs
/// nothing per row, because the children's cells do not move.
package final class Flatten: ConfiguredTransform {
  package static let type = "flatten"
  package static let schemaDescription =
    "Puts the parts of records (addresses, names, locations) into columns of their own."
  private let naming: FlattenNaming

  package init(naming: FlattenNaming = .path) { self.naming = naming }

  package struct Options: KeyedObject, Sendable {
    fileprivate var naming = FlattenNaming.path

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .key(
          "naming", \.naming, .choice(called: "naming"),
          "path: BillingAddress_City; sobject: the names of SOQL, BillingCity.")
      ]
    }
  }

  package init(_ options: Options) { self.naming = options.naming }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    let output = input.with(columns: input.columns.flatMap { self.flattened($0) })
    try output.checkNames(stage: Self.type)
    return output
  }

  private func flattened(_ column: Column) -> [Column] {
    guard case .record(_, let scalar, let children) = column.content else { return [column] }
    var columns: [Column] = []
    if let scalar {
      var branch = column
      branch.content = .slot(scalar.slot, scalar.type)
      columns.append(branch)
    }
    for child in children {
      var child = child
      child.name = self.naming.name(of: child.name, in: column.name)
      columns += self.flattened(child)
    }
    return columns
  }
}
