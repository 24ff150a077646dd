extension Compiler {
  /// A name, or a chain of selections that may begin with a name of several words.
  mutating func qualifiedName(_ expression: Expression) throws(CELError) -> Part {
    var fields: [(name: String, offset: Int)] = []
    var root = expression
    while case .select(let operand, let field, let offset) = root {
      fields.append((field, offset))
      root = operand
    }
    fields.reverse()
    guard case .name(let name, let isRooted, let offset) = root else {
      return try self.select(fields[...], of: try self.compile(root))
    }
    if !isRooted, let local = self.locals.lastIndex(where: { $0.name == name }) {
      let part = self.emit(.local, self.locals[local].type, offset, Int32(local))
      return try self.select(fields[...], of: part)
    }
    // The longest prefix that is a name (language definition, "Name Resolution").
    for count in stride(from: fields.count, through: 0, by: -1) {
      let words = ([name] + fields.prefix(count).map(\.name)).joined(separator: ".")
      guard let part = self.variable(words, at: offset) else { continue }
      return try self.select(fields[count...], of: part)
    }
    guard name == "row", self.scope.hasRow else {
      guard self.scope.acceptsUnknown else {
        throw self.unknown(name, isQualified: !fields.isEmpty, at: offset)
      }
      return try self.select(fields[...], of: self.absentColumn(name, at: offset))
    }
    guard let field = fields.first else { return self.wholeRow(at: offset) }
    if let part = self.variable(field.name, at: field.offset, isColumn: true) {
      return try self.select(fields[1...], of: part)
    }
    guard self.scope.acceptsUnknown else {
      throw self.unknown(field.name, isQualified: false, at: field.offset)
    }
    return try self.select(fields[1...], of: self.absentColumn(field.name, at: field.offset))
  }

  /// A column that no event has.
  private mutating func absentColumn(_ name: String, at offset: Int) -> Part {
    self.note(unknown: name, at: offset)
    return self.constant(.failure(Failure(.absent, at: Int32(offset))), .dyn, offset)
  }

  private mutating func note(unknown name: String, at offset: Int) {
    self.unknownNames.append(
      UnknownName(name: name, position: SourcePosition(offset: offset, in: self.text)))
  }

  /// A column, or unless `isColumn`, a type.
  private mutating func variable(
    _ name: String, at offset: Int, isColumn: Bool = false
  ) -> Part? {
    if let index = self.scope.index(of: name) {
      self.columns.insert(index)
      return self.emit(.column, self.scope.columns[index].type, offset, Int32(index))
    }
    guard !isColumn, let type = TypeName(rawValue: name), type != .decimal else { return nil }
    return self.constant(.type(type), .type, offset)
  }

  private mutating func wholeRow(at offset: Int) -> Part {
    self.columns.formUnion(self.scope.columns.indices)
    self.readsWholeRow = true
    return self.emit(.row, .map(.string, .dyn), offset)
  }

  private mutating func select(
    _ fields: ArraySlice<(name: String, offset: Int)>, of operand: Part
  ) throws(CELError) -> Part {
    var part = operand
    for field in fields {
      let type = try self.typeOfField(field.name, of: part.type, at: field.offset)
      let key = self.constant(.string(self.arena.store(field.name)))
      part = self.emit(.select, type, field.offset, part.place, key)
    }
    return part
  }

  private func typeOfField(
    _ name: String, of type: CELType, at offset: Int
  ) throws(CELError) -> CELType {
    switch type {
    case .dyn: return .dyn
    case .map(let key, let value) where CELType.string.isAccepted(as: key): return value
    default:
      throw self.error(.type, "\(type) has no field '\(name)'", at: offset)
    }
  }

  /// `has(e.f)`.
  mutating func has(_ arguments: [Expression], at offset: Int) throws(CELError) -> Part {
    guard arguments.count == 1, case .select(let operand, let field, let place) = arguments[0]
    else {
      throw self.error(
        .syntax, "has() takes a field: has(row.Name) or has(Column.field)", at: offset)
    }
    if case .name("row", let isRooted, _) = operand, self.scope.hasRow,
      isRooted || !self.locals.contains(where: { $0.name == "row" })
    {
      guard let index = self.scope.index(of: field) else {
        guard self.scope.acceptsUnknown else {
          throw self.unknown(field, isQualified: false, at: place)
        }
        self.note(unknown: field, at: place)
        return self.constant(.bool(false), .bool, offset)
      }
      self.columns.insert(index)
      return self.emit(.hasColumn, .bool, offset, Int32(index))
    }
    let part = try self.compile(operand)
    _ = try self.typeOfField(field, of: part.type, at: place)
    let key = self.constant(.string(self.arena.store(field)))
    return self.emit(.hasField, .bool, offset, part.place, key)
  }

  /// - Parameter isQualified: another name follows behind a dot.
  func unknown(_ name: String, isQualified: Bool, at offset: Int) -> CELError {
    let names = self.scope.columns.map(\.name) + self.locals.map(\.name)
    if isQualified, !NameSuggestion.hasClose(name, among: names) {
      return self.error(
        .unsupported,
        "'\(name)' is not a column (unsupported: names of packages, messages and enums)"
          + NameSuggestion.text(for: name, among: names, kind: "columns"), at: offset)
    }
    return self.error(
      .type,
      "'\(name)' is not a column" + NameSuggestion.text(for: name, among: names, kind: "columns"),
      at: offset)
  }
}
