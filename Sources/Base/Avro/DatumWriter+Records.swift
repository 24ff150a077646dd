internal import JSON

extension DatumWriter {
  /// Records with more fields get no suggestions for unknown members: each compares all names.
  private static let maxFieldsCompared = 300

  mutating func append(
    _ value: JSONValue, fields: [Schema.Field], path: String, depth: Int
  ) {
    guard let members = value.members else { return self.expected("an object", value, path) }
    // The parser refuses objects with duplicate names.
    var rest = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    for field in fields where !self.isStopped {
      let place = JSONReader.path(path, field.name)
      if let member = rest.removeValue(forKey: field.name) {
        self.append(member, as: field.type, path: place, depth: depth + 1)
      } else if let value = field.defaultValue {
        let form = self.form
        self.form = .characters
        self.append(value, as: field.type, path: place, depth: depth + 1)
        self.form = form
      } else if self.takesNull(field.type) {
        self.append(nil, as: field.type, path: place, depth: depth + 1)
      } else {
        self.report(
          JSONMistake(
            path: place, position: value.position,
            message: "is required: the schema has no default for it"))
      }
    }
    guard !rest.isEmpty else { return }
    for member in members where rest[member.name] != nil && member.name != "//" {
      guard !self.isStopped else { return }
      self.report(
        JSONMistake(
          path: JSONReader.path(path, member.name), position: member.namePosition,
          message: Self.unknown(member.name, fields)))
    }
  }

  private static func unknown(_ name: String, _ fields: [Schema.Field]) -> String {
    let known = fields.map(\.name)
    let suggestion =
      fields.count > Self.maxFieldsCompared
      ? "" : nearest(to: name, among: known).map { "; did you mean '\($0)'?" } ?? ""
    return "unknown key" + suggestion
      + (known.isEmpty ? "" : "; known: \(listing(known))")
  }

  private func takesNull(_ type: Schema.TypeID) -> Bool {
    switch self.schema[type].kind {
    case .null: true
    case .union(let branches):
      branches.contains { if case .null = self.schema[$0].kind { true } else { false } }
    default: false
    }
  }
}
