/// The columns of fields that are a scalar or a record, like the name of an account or of a person.
///
/// Such a field has one branch at a time, so an update that sets one branch empties the other,
/// whether or not it names it. Loading and rebuilding both add that to their rows.
struct UnionColumns {
  private struct Union {
    var scalar: Int
    var parts: [Int]
  }

  private let unions: [Union]
  /// By column, the number of the union whose scalar branch it is.
  private let unionOfScalar: [Int32]
  /// By column, the number of the union whose part it is.
  private let unionOfPart: [Int32]

  init(_ columns: [TableColumn]) {
    var unions: [Union] = []
    var unionOfScalar = Array(repeating: -1 as Int32, count: columns.count)
    var unionOfPart = unionOfScalar
    for (scalar, column) in columns.enumerated()
    where column.type != .jsonb && !column.isCompound {
      let parts = columns.indices.filter { columns[$0].path.hasPrefix(column.path + ".") }
      guard !parts.isEmpty else { continue }
      unionOfScalar[scalar] = Int32(unions.count)
      for part in parts { unionOfPart[part] = Int32(unions.count) }
      unions.append(Union(scalar: scalar, parts: parts))
    }
    self.unions = unions
    self.unionOfScalar = unionOfScalar
    self.unionOfPart = unionOfPart
  }

  /// Nulls the branches that an update has emptied. Its cells are the buffer's last, from `first`
  /// on.
  func nullOtherBranches(in buffer: inout RowBuffer, from first: Int) {
    guard !self.unions.isEmpty else { return }
    let end = buffer.cells.count
    for index in first..<end where !buffer.cells[index].isNull {
      let column = Int(buffer.cells[index].column)
      if self.unionOfScalar[column] >= 0 {
        for part in self.unions[Int(self.unionOfScalar[column])].parts {
          Self.null(part, in: &buffer, from: first)
        }
      }
      if self.unionOfPart[column] >= 0 {
        Self.null(self.unions[Int(self.unionOfPart[column])].scalar, in: &buffer, from: first)
      }
    }
  }

  /// Skipped if the row has the column itself.
  private static func null(_ column: Int, in buffer: inout RowBuffer, from first: Int) {
    for index in first..<buffer.cells.count where Int(buffer.cells[index].column) == column {
      return
    }
    buffer.cells.append(RowBuffer.Cell(nullOf: column))
  }
}
