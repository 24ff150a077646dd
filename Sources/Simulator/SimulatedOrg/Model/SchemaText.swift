/// Writes a schema as the service does (one line, nested types defined at first use, then referred to by
/// name) and in Avro's Parsing Canonical Form.
///
/// Source: EventSchemas.md; Avro specification, "Transforming into Parsing Canonical
/// Form": only `name`, `type`, `fields`, `symbols`, `items`, in this order, with full names.
struct SchemaText {
  static let namespace = "com.sforce.eventbus"

  private(set) var json = ""
  private(set) var canonicalForm = ""

  init(
    category: EntityModel.Category, recordName: String, fields: [Field], changeTypes: [String]
  ) {
    self.json = Self.text(category, recordName, fields, changeTypes, isCanonical: false)
    self.canonicalForm = Self.text(category, recordName, fields, changeTypes, isCanonical: true)
  }

  private static func text(
    _ category: EntityModel.Category, _ recordName: String, _ fields: [Field],
    _ changeTypes: [String], isCanonical: Bool
  ) -> String {
    var defined: Set<String> = []
    func reference(_ name: String) -> String {
      isCanonical ? "\"\(Self.namespace).\(name)\"" : "\"\(name)\""
    }
    func record(_ name: String, _ fields: [String], isTop: Bool = false) -> String {
      let list = fields.joined(separator: ",")
      if isCanonical {
        return "{\"name\":\(reference(name)),\"type\":\"record\",\"fields\":[\(list)]}"
      }
      let space = isTop ? ",\"namespace\":\"\(Self.namespace)\"" : ""
      return "{\"type\":\"record\",\"name\":\"\(name)\"\(space),\"fields\":[\(list)]}"
    }
    func child(_ leaf: Leaf) -> String {
      let type = "[\"null\",\"\(leaf.type.rawValue)\"]"
      let tail = isCanonical ? "" : ",\"default\":null"
      return "{\"name\":\"\(leaf.name)\",\"type\":\(type)\(tail)}"
    }
    func compound(_ name: String, _ children: [Leaf]) -> String {
      guard defined.insert(name).inserted else { return reference(name) }
      return record(name, children.map(child))
    }
    func line(_ field: Field) -> String {
      let type: String
      switch field.shape {
      case .scalar(let scalar, _):
        type =
          field.isRequired ? "\"\(scalar.rawValue)\"" : "[\"null\",\"\(scalar.rawValue)\"]"
      case .compound(let name, let children):
        type = "[\"null\",\(compound(name, children))]"
      case .switchableName(let children):
        type = "[\"null\",\"string\",\(compound("Switchable_PersonName", children))]"
      }
      if isCanonical { return "{\"name\":\"\(field.name)\",\"type\":\(type)}" }
      let fallback = field.isRequired ? "" : ",\"default\":null"
      return "{\"name\":\"\(field.name)\",\"type\":\(type),\"doc\":\"\(field.doc)\"\(fallback)}"
    }
    var all: [String] = []
    if category == .changeEvent {
      let strings = "{\"type\":\"array\",\"items\":\"string\"}"
      let symbols = changeTypes.map { "\"\($0)\"" }.joined(separator: ",")
      let changeType =
        isCanonical
        ? "{\"name\":\(reference("ChangeType")),\"type\":\"enum\",\"symbols\":[\(symbols)]}"
        : "{\"type\":\"enum\",\"name\":\"ChangeType\",\"symbols\":[\(symbols)]}"
      let header = [
        ("entityName", "\"string\""), ("recordIds", strings), ("changeType", changeType),
        ("changeOrigin", "\"string\""), ("transactionKey", "\"string\""),
        ("sequenceNumber", "\"int\""), ("commitTimestamp", "\"long\""),
        ("commitNumber", "\"long\""), ("commitUser", "\"string\""), ("nulledFields", strings),
        ("diffFields", strings), ("changedFields", strings),
      ].map { "{\"name\":\"\($0.0)\",\"type\":\($0.1)}" }
      let type = record("ChangeEventHeader", header)
      let doc = isCanonical ? "" : ",\"doc\":\"Data:ComplexValueType\""
      all.append("{\"name\":\"ChangeEventHeader\",\"type\":\(type)\(doc)}")
    }
    all += fields.map(line)
    return record(recordName, all, isTop: true)
  }
}
