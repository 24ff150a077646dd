extension TableDefinition {
  /// Earlier names that lists of fields have for columns, and the columns with their values now, the
  /// newest first. When a field changes its type, a new column takes the name of the old one.
  ///
  /// - Parameter renames: renamings of the table's columns, in their order.
  func listedNames(
    _ renames: [(from: String, to: String)]
  ) -> [(listed: String, columns: [String])] {
    let today = Set(self.dataColumns.map(\.name))
    var listed: [String] = []
    for rename in renames where !listed.contains(rename.from) { listed.append(rename.from) }
    return listed.map { name in
      // Where the columns of that name are after all renamings.
      var places: [String] = today.contains(name) ? [name] : []
      for (index, rename) in renames.enumerated() where rename.from == name {
        let place = renames[(index + 1)...].reduce(rename.to) { $1.from == $0 ? $1.to : $0 }
        if today.contains(place), !places.contains(place) { places.append(place) }
      }
      return (name, places)
    }
  }
}
