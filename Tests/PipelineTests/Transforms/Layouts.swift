import Pipeline

extension Column {
  init(_ name: String, _ slot: Int, _ type: ColumnType = .string) {
    self.init(name: name, path: [name], content: .slot(slot, type))
  }

  init(metadata name: String, _ slot: Int) {
    self.init(name: name, path: [name], content: .slot(slot, .string), isMetadata: true)
  }

  /// A record whose children have the slots that follow its own.
  init(
    record name: String, _ slot: Int, scalar: ScalarBranch? = nil, children: [String]
  ) {
    self.init(
      name: name, path: [name],
      content: .record(
        slot: slot, scalar: scalar,
        children: children.enumerated().map { index, child in
          Column(
            name: child, path: [name, child], content: .slot(slot + 1 + index, .string))
        }))
  }
}

extension RecordLayout {
  static func of(_ columns: [Column], slotCount: Int = 100) -> RecordLayout {
    RecordLayout(
      topic: "/data/AccountChangeEvent", schemaID: "schema-1", entity: "Account",
      family: .changeEvent, slotCount: slotCount, fieldOrder: Array(0..<slotCount),
      columns: columns)
  }

  var names: [String] { self.columns.map(\.name) }
}
