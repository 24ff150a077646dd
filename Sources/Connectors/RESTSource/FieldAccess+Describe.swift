package import Pipeline
package import SalesforceREST

extension FieldAccess {
  /// How the fields of an object can be read, by their dotted names in events.
  ///
  /// Describe leaves out fields that the user may not see, and fields that REST does not have. A
  /// part of a compound is of the second kind if another part can be seen, and so is a field whose
  /// parts REST has as separate fields (`EmailPreferences`, `EmailPreferencesAutoBcc`).
  package static func known(
    _ fields: some Sequence<String>, in object: ObjectDescription
  ) -> [String: FieldAccess] {
    let described = Dictionary(
      object.fields.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var known: [String: FieldAccess] = [:]
    var seenParents: Set<Substring> = []
    var parts: [(name: String, parent: Substring)] = []
    for name in Set(fields) {
      let path = name.split(separator: ".", maxSplits: 1)
      guard path.count > 1 else {
        known[name] =
          described[name].map { $0.isCalculated ? .calculated : .readable }
          ?? (Self.hasParts(name, described.keys) ? .unreadable : .hidden)
        continue
      }
      let field = described[
        FlattenNaming.sobject.name(of: String(path[1]), in: String(path[0]))]
      if let field {
        seenParents.insert(path[0])
        known[name] = field.isCompound ? .unreadable : field.isCalculated ? .calculated : .readable
      } else {
        parts.append((name, path[0]))
      }
    }
    for (name, parent) in parts {
      let isSeen =
        seenParents.contains(parent) || described[String(parent)] != nil
        || Self.hasParts(String(parent), described.keys)
      known[name] = isSeen ? .unreadable : .hidden
    }
    return known
  }

  /// Whether fields have names that begin with this one and continue with a word.
  private static func hasParts(_ name: String, _ names: some Sequence<String>) -> Bool {
    !name.hasSuffix("__c")
      && names.contains {
        $0.hasPrefix(name) && $0.dropFirst(name.count).first?.isUppercase == true
      }
  }
}

extension FieldDescription {
  package init(_ field: ObjectDescription.Field) {
    self.init(
      name: field.name, label: field.label, type: field.type, length: field.length,
      references: field.references, formula: field.formula,
      treatsBlankAsZero: field.treatsBlankAsZero, scale: field.scale, helpText: field.helpText,
      choices: field.choices.map {
        Choice(value: $0.value, label: $0.label, isActive: $0.isActive, isDefault: $0.isDefault)
      })
  }
}

extension RecordLayout {
  /// The names in SOQL of the fields of the schema and of the parts of compounds.
  var soqlNames: Set<String> {
    Set(
      self.columns.lazy.filter { !$0.isMetadata }.flatMap { column -> [String] in
        guard case .record(_, _, let children) = column.content else { return [column.name] }
        return [column.name]
          + children.map { FlattenNaming.sobject.name(of: $0.name, in: column.name) }
      })
  }

  /// Dotted names of the fields whose values rows hold, with the parts of compounds.
  package var fieldNames: [String] {
    self.columns.lazy.filter { !$0.isMetadata }.flatMap { column -> [String] in
      let name = column.path.joined(separator: ".")
      switch column.content {
      case .constant: return []
      case .slot: return [name]
      case .record(_, _, let children):
        return [name] + children.map { $0.path.joined(separator: ".") }
      }
    }
  }
}
