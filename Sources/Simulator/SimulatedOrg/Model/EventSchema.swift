/// One version of a schema: the encoding order, and which field index each slot has in it.
package final class EventSchema: Sendable {
  /// One step of the encoder, in writing order.
  package enum Step: Sendable {
    case required(slot: Int, ScalarType)
    case nullable(slot: Int, ScalarType)
    /// `[null, record]`
    case compound(slot: Int, children: [ChildStep])
    /// `[null, string, record]`
    case switchableName(slot: Int, children: [ChildStep])
  }

  package struct ChildStep: Sendable {
    var slot: Int
    var type: ScalarType
  }

  /// Index of a top-level field (header = 0) and of the child in it.
  struct Position: Hashable, Sendable {
    var field: Int
    var child: Int?
  }

  let category: EntityModel.Category
  let recordName: String
  let fields: [Field]
  let changeTypes: [String]
  package let steps: [Step]
  /// Per slot; nil when this version has no such field.
  let positions: [Position?]
  package let json: String
  /// base64url of the MD5 of the canonical form, 22 characters.
  package let id: String
  let idBytes: [UInt8]

  init(
    category: EntityModel.Category, recordName: String, fields: [Field], changeTypes: [String],
    slotCount: Int, slotOf: [String: Int]
  ) {
    self.category = category
    self.recordName = recordName
    self.fields = fields
    self.changeTypes = changeTypes
    var positions = [Position?](repeating: nil, count: slotCount)
    var steps: [Step] = []
    let offset = category == .changeEvent ? 1 : 0
    for (index, field) in fields.enumerated() {
      let slot = slotOf[field.name, default: 0]
      positions[slot] = Position(field: index + offset, child: nil)
      func childSteps(_ children: [Leaf]) -> [ChildStep] {
        children.enumerated().map { childIndex, leaf in
          let childSlot = slotOf["\(field.name).\(leaf.name)", default: 0]
          positions[childSlot] = Position(field: index + offset, child: childIndex)
          return ChildStep(slot: childSlot, type: leaf.type)
        }
      }
      switch field.shape {
      case .scalar(let type, _) where field.isRequired:
        steps.append(.required(slot: slot, type))
      case .scalar(let type, _):
        steps.append(.nullable(slot: slot, type))
      case .compound(_, let children):
        steps.append(.compound(slot: slot, children: childSteps(children)))
      case .switchableName(let children):
        steps.append(.switchableName(slot: slot, children: childSteps(children)))
      }
    }
    self.steps = steps
    self.positions = positions
    let text = SchemaText(
      category: category, recordName: recordName, fields: fields, changeTypes: changeTypes)
    self.json = text.json
    self.id = MessageDigest.schemaID(ofCanonicalForm: text.canonicalForm)
    self.idBytes = Array(self.id.utf8)
  }
}
