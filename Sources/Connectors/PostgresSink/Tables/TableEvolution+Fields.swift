internal import PostgresClient

// A custom field keeps its ID when its API name changes. Columns follow it by this ID.
extension TableEvolution {
  /// What a schema changes in the names of columns.
  private struct FieldRename {
    var field: TableMapping.Field
    var column: TableState.Registered
  }

  /// The layout belongs to the newest schema that is known of the object.
  var isNewest: Bool { self.isCurrent || self.isFirstSight && !self.isEarlier }

  /// The tables got the columns of the layout's schema last.
  var isLast: Bool {
    !self.mapping.schemaID.isEmpty && self.state.lastSchema == self.mapping.schemaID
  }

  /// Renames the columns of fields that have another API name now. A column whose name another field
  /// has now is kept under another one.
  mutating func followFields() {
    guard self.state.hasFieldIDs, self.isNewest, self.configuration.contract != .discard else {
      return
    }
    let renames = self.fieldRenames()
    let renamed = Set(renames.map(\.column.name))
    let targets = Set(renames.map(\.field.name))
    let replaced = self.mapping.fields.compactMap { field -> TableState.Registered? in
      guard let id = field.fieldID, let column = self.registered(field.name),
        column.fieldID != id, !renamed.contains(column.name)
      else { return nil }
      return column.fieldID != nil || targets.contains(field.name) ? column : nil
    }
    if self.configuration.contract == .freeze {
      self.refuse(renames.filter { $0.column.name != $0.field.name }, replaced)
      guard self.missing.isEmpty else { return }
    }
    // Paths are those from before, also where fields have swapped their names.
    var paths: [(column: String, path: String)] = []
    for column in replaced {
      let kept = self.nameForOld(column.name)
      for index in self.state.tables.indices {
        self.rename(
          column.name, to: kept, in: index, .otherField,
          ", because another field has the name \(column.path) now")
      }
      let path = Self.formerPath(column.path, column.fieldID)
      paths += self.columns(ofField: column.path).map {
        ($0 == column.name ? kept : $0, path)
      }
    }
    for rename in renames {
      paths += self.columns(ofField: rename.column.path).map {
        ($0 == rename.column.name ? rename.field.name : $0, rename.field.path)
      }
    }
    self.rename(renames)
    for (column, path) in paths {
      for index in self.state.tables.indices { self.setPath(path, of: column, in: index) }
    }
  }

  /// Fields whose columns have another API name. A column that somebody made keeps its name, so the
  /// field's column does as well.
  private mutating func fieldRenames() -> [FieldRename] {
    var renames: [FieldRename] = []
    for field in self.mapping.fields {
      guard let column = self.identified(field), column.path != field.path else { continue }
      let isTaken = self.state.tables.contains {
        $0.column(field.name) != nil && $0.registered[field.name] == nil
      }
      guard !isTaken else {
        self.warnings.append(
          "postgres: field \(column.path) of \(self.mapping.entity) is named \(field.path) now, but "
            + "its column keeps the name \(SQLIdentifier.quoted(column.name)), because somebody made "
            + "a column \(SQLIdentifier.quoted(field.name)); rename that column")
        continue
      }
      renames.append(FieldRename(field: field, column: column))
    }
    return renames
  }

  /// Notes what contract `freeze` does not allow.
  private mutating func refuse(
    _ renames: [FieldRename], _ replaced: [TableState.Registered]
  ) {
    for rename in renames {
      self.refusedPaths.insert(rename.field.path)
      self.missing.append(
        "column \(SQLIdentifier.quoted(rename.column.name)) renamed to "
          + "\(SQLIdentifier.quoted(rename.field.name)), because field \(rename.column.path) is "
          + "named \(rename.field.path) now")
    }
    for column in replaced {
      self.missing.append(
        "column \(SQLIdentifier.quoted(column.name)) under another name, because another field has "
          + "the name \(column.path) now")
      for field in self.mapping.fields where field.name == column.name {
        self.refusedPaths.insert(field.path)
      }
    }
  }

  /// A name that another column leaves is taken after that. Where fields have swapped their names, one
  /// column gets a name in between.
  private mutating func rename(_ renames: [FieldRename]) {
    var left = renames.filter { $0.column.name != $0.field.name }
    while !left.isEmpty {
      let taken = Set(left.map(\.column.name))
      let place = left.firstIndex { !taken.contains($0.field.name) }
      var next = left.remove(at: place ?? 0)
      let note = ", because field \(next.column.path) is named \(next.field.path) now"
      let name = place == nil ? self.freeName(next.column.name + "__renamed") : next.field.name
      for index in self.state.tables.indices {
        self.rename(next.column.name, to: name, in: index, .fieldName, note)
      }
      guard place == nil else { continue }
      next.column.name = name
      left.append(next)
    }
  }

  /// Names of the columns that hold a field, also those of its earlier types.
  private func columns(ofField path: String) -> [String] {
    var names: [String] = []
    for column in self.state.tables.flatMap(\.registered)
    where column.path == path && !names.contains(column.name) {
      names.append(column.name)
    }
    return names
  }

  /// The column of a custom field, whatever its name is; nil if its ID is not known.
  func identified(_ field: TableMapping.Field) -> TableState.Registered? {
    guard let id = field.fieldID else { return nil }
    for table in self.state.tables {
      if let column = table.registered.first(where: { $0.fieldID == id }) { return column }
    }
    return nil
  }

  /// The field with the name and path of its column. Events of an earlier schema have the names from
  /// before a rename.
  ///
  /// - Returns: nil if the field's column is that of another field, and the contract allows no other.
  func following(_ field: TableMapping.Field) -> TableMapping.Field? {
    guard let id = field.fieldID else { return field }
    var field = field
    if let column = self.identified(field) {
      guard column.path != field.path,
        !self.mapping.fields.contains(where: {
          $0.name == column.name && $0.path != field.path && self.identified($0) == nil
        })
      else { return field }
      (field.name, field.path) = (column.name, column.path)
      return field
    }
    guard let other = self.registered(field.name)?.fieldID, other != id else { return field }
    guard self.configuration.contract != .discard else { return nil }
    field.name = self.nameForOld(field.name)
    field.path = Self.formerPath(field.path, id)
    return field
  }

  /// What `_columns` shows as the field of a column whose field has lost its name to another one.
  private static func formerPath(_ path: String, _ id: String?) -> String {
    "\(path) (\(id ?? "earlier"))"
  }

  /// API names have no parentheses.
  static func isFormerPath(_ path: String) -> Bool { path.hasSuffix(")") }

  /// - Parameter present: the path of the column that has the name now.
  static func isFormerPath(_ path: String, of present: String) -> Bool {
    self.isFormerPath(path) && path.hasPrefix("\(present) (")
  }

  private mutating func setPath(_ path: String, of name: String, in index: Int) {
    let table = self.state.tables[index].name
    guard let column = self.state.tables[index].registered[name], column.path != path else {
      return
    }
    self.state.tables[index].registered.change(name) { $0.path = path }
    self.statements.append(self.bookkeeping.set("path", to: path, column: name, of: table))
    guard column.isCompound, let changed = self.state.tables[index].registered[name] else { return }
    self.note(self.state.tables[index], "compound", changed.compoundNote)
  }

  // MARK: IDs

  /// Only one column of a table has the ID of a field, not those of its earlier types.
  mutating func setID(_ id: String?, of name: String, in index: Int) {
    guard self.state.hasFieldIDs, self.state.tables[index].registered[name]?.fieldID != id,
      self.state.tables[index].registered.change(name, { $0.fieldID = id })
    else { return }
    self.statements.append(
      self.bookkeeping.set(
        "field_id", to: id, column: name, of: self.state.tables[index].name))
  }

  /// Learns the IDs of columns that earlier versions made, where the names still match.
  mutating func learnIDs() {
    guard self.state.hasFieldIDs else { return }
    for index in self.state.tables.indices {
      var learned: [(column: String, id: String)] = []
      let known = Set(self.state.tables[index].registered.compactMap(\.fieldID))
      for (field, name) in zip(self.mapping.fields, self.columnNames) {
        guard let id = field.fieldID, let name, !known.contains(id),
          let column = self.state.tables[index].registered[name], column.fieldID == nil,
          column.path == field.path
        else { continue }
        self.state.tables[index].registered.change(name) { $0.fieldID = id }
        learned.append((name, id))
      }
      if !learned.isEmpty {
        self.statements.append(
          self.bookkeeping.identify(learned, of: self.state.tables[index].name))
      }
    }
  }
}
