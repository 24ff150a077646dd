/// The columns of fields that are a scalar or a record, like the name of an account or of a person.
///
/// Such a field has one branch at a time, so an update that gives one a value has emptied the other,
/// whether it names it or not. Loading and rebuilding both put that into their rows.
struct UnionColumns {
  private struct Union {
    var scalar: Int
    var parts: [Int]
  }

  private let unions: [Union]
  /// By column: number of the union of which it is the scalar.
  private let unionOfScalar: [Int32]
  /// By column: number of the union of which it is a part.
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

  /// Nulls what the cells of an update have emptied: those of the buffer from `first` on, its last.
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

  /// Unless the row says something of the column itself.
  private static func null(_ column: Int, in buffer: inout RowBuffer, from first: Int) {
    for index in first..<buffer.cells.count where Int(buffer.cells[index].column) == column {
      return
    }
    buffer.cells.append(RowBuffer.Cell(nullOf: column))
  }
}
