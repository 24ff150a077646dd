/// The type of a leaf on the wire: the Avro branch beside `null`.
package enum ScalarType: String, Sendable {
  case string, int, long, double, boolean
}

/// How realistic values of a leaf look.
indirect enum ValueKind: Sendable, Equatable {
  /// What a number field holds after it became a text field: the same values, as texts.
  case textOf(ValueKind)
  /// Half the value of another slot.
  case formula(slot: Int, edition: Int)
  /// A picklist that an admin has edited.
  case choices(Picklist)
  case text, picklist, multiPicklist, phone, email, url, entityID, encrypted, autoNumber
  /// IDs of records that exist, where their object is generated too.
  case accountID, contactID
  case longText, richText
  case boolean, integer, number, currency, percent
  case dateTime, dateOnly, timeOnly
  case street, city, state, postalCode, country, stateCode, countryCode
  case latitude, longitude, geocodeAccuracy
  case salutation, firstName, lastName
  case createdDate, createdBy, modifiedDate, modifiedBy

  var isLongText: Bool { self == .longText || self == .richText }

  /// The object whose records the value refers to.
  var referencedEntity: String? {
    switch self {
    case .accountID: "Account"
    case .contactID: "Contact"
    default: nil
    }
  }
}

struct Leaf: Sendable {
  var name: String
  var type: ScalarType
  var kind: ValueKind
}

/// One top-level field of an object or a platform event.
struct Field: Sendable {
  enum Shape: Sendable {
    case scalar(ScalarType, ValueKind)
    /// A compound field. `record` is the name of the Avro record type.
    case compound(record: String, children: [Leaf])
    /// Account.Name with person accounts: `[null, string, Switchable_PersonName]`.
    case switchableName(children: [Leaf])
  }

  var name: String
  /// `<Role>:<Type>[:<custom field ID>]` (ChangeEvents.md#field-types).
  var doc: String
  var shape: Shape
  /// Platform events: `CreatedDate` and `CreatedById` are not nullable and have no default.
  var isRequired = false
}

/// An object or platform event in all its versions. A *slot* is the index of a value in a record of the
/// newest superset: one slot per field, followed by one per child.
package final class EntityModel: Sendable {
  enum Category: Sendable {
    case changeEvent
    case platformEvent
  }

  /// The path of a slot, for names.
  struct Slot: Sendable {
    var name: String
    /// `Parent.Child` for children: how changed fields are named.
    var path: String
    var kind: ValueKind?
    var parent: Int?
  }

  let category: Category
  /// API name of the object (`Account`, `Foo__c`) or of the platform event.
  let entity: String
  let entityBytes: [UInt8]
  /// Name of the Avro record: `AccountChangeEvent`, `Foo__ChangeEvent`, `Order_Event__e`.
  let recordName: String
  let keyPrefix: String
  let slots: [Slot]
  let slotOf: [String: Int]
  let firstChild: [Int: Range<Int>]
  /// Oldest first; the last one is what `GetTopic` names.
  package let versions: [EventSchema]

  var topic: String {
    (self.category == .changeEvent ? "/data/" : "/event/") + self.recordName
  }

  /// - Parameter versions: the fields of each version, oldest first. Fields are matched by name; the
  ///   symbols are those of the `ChangeType` enum.
  init(
    category: Category, entity: String, recordName: String, keyPrefix: String,
    versions: [(fields: [Field], changeTypes: [String])]
  ) {
    self.category = category
    self.entity = entity
    self.entityBytes = Array(entity.utf8)
    self.recordName = recordName
    self.keyPrefix = keyPrefix
    var slots: [Slot] = []
    var byPath: [String: Int] = [:]
    var firstChild: [Int: Range<Int>] = [:]
    for (fields, _) in versions {
      for field in fields where byPath[field.name] == nil {
        let parent = slots.count
        byPath[field.name] = parent
        switch field.shape {
        case .scalar(_, let kind):
          slots.append(Slot(name: field.name, path: field.name, kind: kind, parent: nil))
        case .compound(_, let children), .switchableName(let children):
          slots.append(Slot(name: field.name, path: field.name, kind: nil, parent: nil))
          for child in children {
            let path = "\(field.name).\(child.name)"
            byPath[path] = slots.count
            slots.append(Slot(name: child.name, path: path, kind: child.kind, parent: parent))
          }
          firstChild[parent] = (parent + 1)..<slots.count
        }
      }
    }
    self.slots = slots
    self.slotOf = byPath
    self.firstChild = firstChild
    let slotCount = slots.count
    self.versions = versions.map {
      EventSchema(
        category: category, recordName: recordName, fields: $0.fields, changeTypes: $0.changeTypes,
        slotCount: slotCount, slotOf: byPath)
    }
  }

  /// A name that an admin gives to a field.
  struct NameChange {
    /// A deleted field may have had it before.
    var given: String?
    /// What the field was called until then; nil for a new field.
    var former: String?
  }

  /// The same object after an admin changed its fields: its schema gets one more version. Slots stay
  /// where they are, so that records keep their values.
  ///
  /// - Parameter fields: new fields are scalars.
  init(_ model: EntityModel, fields: [Field], _ names: NameChange = NameChange()) {
    (self.category, self.entity, self.entityBytes) =
      (model.category, model.entity, model.entityBytes)
    (self.recordName, self.keyPrefix) = (model.recordName, model.keyPrefix)
    self.firstChild = model.firstChild
    var (slots, slotOf) = (model.slots, model.slotOf)
    if let given = names.given {
      slotOf[given] = names.former.flatMap { slotOf.removeValue(forKey: $0) }
      if let slot = slotOf[given] { (slots[slot].name, slots[slot].path) = (given, given) }
    }
    for case (let name, .scalar(_, let kind)) in fields.map({ ($0.name, $0.shape) }) {
      if let slot = slotOf[name] {
        slots[slot].kind = kind
      } else {
        slotOf[name] = slots.count
        slots.append(Slot(name: name, path: name, kind: kind, parent: nil))
      }
    }
    (self.slots, self.slotOf) = (slots, slotOf)
    self.versions =
      model.versions + [
        EventSchema(
          category: model.category, recordName: model.recordName, fields: fields,
          changeTypes: model.versions.last?.changeTypes ?? ChangeType.symbols,
          slotCount: slots.count, slotOf: slotOf)
      ]
  }
}
