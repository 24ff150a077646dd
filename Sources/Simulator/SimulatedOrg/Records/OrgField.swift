/// A field as describe, SOQL and Bulk know it (RESTAndBulk.md#describe).
package struct OrgField: Sendable {
  /// Names as in describe.
  package enum FieldType: String, Sendable {
    case id, string, textarea, picklist, multipicklist, phone, email, url, reference
    case encryptedstring, boolean, int, double, currency, percent, date, datetime, time
    case address, location
    /// The value has the type of the field that was changed.
    case anyType

    var isCompound: Bool { self == .address || self == .location }
    var isText: Bool {
      switch self {
      case .id, .string, .textarea, .picklist, .multipicklist, .phone, .email, .url, .reference,
        .encryptedstring:
        true
      default: false
      }
    }
    var soapType: String {
      switch self {
      case .id, .reference: "tns:ID"
      case .boolean: "xsd:boolean"
      case .int: "xsd:int"
      case .double, .currency, .percent: "xsd:double"
      case .date: "xsd:date"
      case .datetime: "xsd:dateTime"
      case .time: "xsd:time"
      case .address: "urn:address"
      case .location: "urn:location"
      case .anyType: "xsd:anyType"
      default: "xsd:string"
      }
    }
  }

  enum Source: Sendable {
    case id, isDeleted, systemModstamp
    case slot(Int)
    /// Parts of an address or location: the names and slots of what it has.
    case parts([(name: String, slot: Int)])
    /// First and last name in one text; of an account that is not a person, the slot's own text.
    case fullName(slot: Int, first: Int, last: Int)
    /// It may change without the record. The slots are those of `OrgFormula.sources`.
    case formula(OrgFormula, [Int])
    /// A column of a field history.
    case change(FieldHistory.Column)
  }

  package let name: String
  package let type: FieldType
  let source: Source
  /// `compoundFieldName`.
  var compound: String?
  var isLong = false
  var isCalculated = false
  /// The text of a formula.
  var formula: String?
  var treatsBlankAsZero = false
  /// Of a picklist that an admin has edited.
  var picklist: Picklist?

  var isCustom: Bool { self.name.hasSuffix("__c") || self.name.hasSuffix("__s") }
}

/// An object as the REST API has it: fields of its events, under the names of SOQL, and more.
package struct OrgObject: Sendable {
  package let name: String
  package let keyPrefix: String
  package let fields: [OrgField]
  private let indexes: [String: Int]

  /// - Parameters:
  ///   - hidden: names of fields that the user may not see.
  ///   - hasFormulas: the object has all formula fields instead of one.
  ///   - edited: formulas that an admin has changed.
  init(
    _ model: EntityModel, hidden: Set<String> = [], hasFormulas: Bool = false,
    edited: Set<OrgFormula> = []
  ) {
    self.name = model.entity
    self.keyPrefix = model.keyPrefix
    var fields = [
      OrgField(name: "Id", type: .id, source: .id),
      OrgField(name: "IsDeleted", type: .boolean, source: .isDeleted),
    ]
    let positions = model.versions.last?.positions ?? []
    // Deleted fields keep their slots.
    for (index, slot) in model.slots.enumerated()
    where slot.parent == nil && positions[index] != nil {
      guard let kind = slot.kind else {
        fields += Self.compound(slot.name, index, model)
        continue
      }
      var field = OrgField.field(slot.name, kind, index)
      if case .formula(let source, let edition) = kind {
        let half = "\(model.slots[source].name) / 2"
        // The values of an edited formula are the reader's own.
        field.formula = edition == 0 ? half : "\(half) + \(edition) * PRIORVALUE(Id)"
      }
      fields.append(field)
      if slot.name == "CreatedById" {
        fields.append(OrgField(name: "SystemModstamp", type: .datetime, source: .systemModstamp))
      }
    }
    func slot(_ name: String) -> Int? { model.slots.firstIndex { $0.path == name } }
    let isDeal = slot("Amount") != nil && slot("Probability") != nil
    for formula in OrgFormula.allCases
    where isDeal && (hasFormulas || formula == .weightedAmount)
      && !fields.contains(where: { $0.name == formula.name })
    {
      let sources = formula.sources.compactMap(slot)
      guard sources.count == formula.sources.count else { continue }
      fields.append(
        OrgField(
          name: formula.name, type: formula.type, source: .formula(formula, sources),
          isCalculated: true,
          formula: formula.text + (edited.contains(formula) ? " + PRIORVALUE(Id)" : ""),
          treatsBlankAsZero: formula.treatsBlankAsZero))
    }
    self.fields = fields.filter { !hidden.contains("\(model.entity).\($0.name)") }
    self.indexes = Dictionary(
      self.fields.enumerated().map { ($1.name.lowercased(), $0) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The field history of an object.
  init(historyOf object: String) {
    self.name = "\(object)FieldHistory"
    self.keyPrefix = FieldHistory.keyPrefix
    self.fields = [
      OrgField(name: "Id", type: .id, source: .id),
      OrgField(name: "IsDeleted", type: .boolean, source: .isDeleted),
      OrgField(name: "\(object)Id", type: .reference, source: .change(.parent)),
      OrgField(name: "CreatedById", type: .reference, source: .change(.createdBy)),
      OrgField(name: "CreatedDate", type: .datetime, source: .change(.createdDate)),
      OrgField(name: "Field", type: .picklist, source: .change(.field)),
      OrgField(name: "DataType", type: .picklist, source: .change(.dataType)),
      OrgField(name: "OldValue", type: .anyType, source: .change(.old)),
      OrgField(name: "NewValue", type: .anyType, source: .change(.new)),
    ]
    self.indexes = Dictionary(
      self.fields.enumerated().map { ($1.name.lowercased(), $0) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The index of a field, whose name is compared without case.
  func index(of name: some StringProtocol) -> Int? { self.indexes[name.lowercased()] }

  /// The compound field and its components.
  private static func compound(
    _ name: String, _ index: Int, _ model: EntityModel
  ) -> [OrgField] {
    let children = model.firstChild[index, default: 0..<0].filter {
      model.slots[$0].name != "XyzEncoded"
    }
    func child(_ name: String) -> Int { children.first { model.slots[$0].name == name } ?? index }
    let parts = children.map { (name: model.slots[$0].name, slot: $0) }
    func components(_ componentName: (String) -> String) -> [OrgField] {
      children.compactMap { slot in
        model.slots[slot].kind.map {
          OrgField.field(componentName(model.slots[slot].name), $0, slot, compound: name)
        }
      }
    }
    if name.hasSuffix("Address") {
      let prefix = name.dropLast("Address".count)
      return components { "\(prefix)\($0)" } + [
        OrgField(name: name, type: .address, source: .parts(parts))
      ]
    }
    if name == "Name" {
      let full = OrgField.Source.fullName(
        slot: index, first: child("FirstName"), last: child("LastName"))
      return [OrgField(name: name, type: .string, source: full, compound: name)]
        + components { $0 }
    }
    let stem = name.hasSuffix("__c") ? name.dropLast(3) : name[...]
    return components { "\(stem)__\($0)__s" } + [
      OrgField(
        name: name, type: .location,
        source: .parts(parts.map { ($0.name.lowercased(), $0.slot) }))
    ]
  }
}

extension OrgField {
  static func field(
    _ name: String, _ kind: ValueKind, _ slot: Int, compound: String? = nil
  ) -> OrgField {
    let isFormula = if case .formula = kind { true } else { false }
    let picklist: Picklist? = if case .choices(let list) = kind { list } else { nil }
    return OrgField(
      name: name, type: kind.fieldType, source: .slot(slot), compound: compound,
      isLong: kind.isLongText, isCalculated: isFormula, picklist: picklist)
  }
}

extension ValueKind {
  fileprivate var fieldType: OrgField.FieldType {
    switch self {
    case .textOf: .string
    case .formula: .double
    case .text, .autoNumber, .city, .state, .postalCode, .country, .firstName, .lastName: .string
    case .longText, .richText, .street: .textarea
    case .picklist, .stateCode, .countryCode, .geocodeAccuracy, .salutation: .picklist
    case .multiPicklist: .multipicklist
    case .choices(let list): list.isMultiple ? .multipicklist : .picklist
    case .phone: .phone
    case .email: .email
    case .url: .url
    case .entityID, .accountID, .contactID, .createdBy, .modifiedBy: .reference
    case .encrypted: .encryptedstring
    case .boolean: .boolean
    case .integer: .int
    case .number, .latitude, .longitude: .double
    case .currency: .currency
    case .percent: .percent
    case .dateTime, .createdDate, .modifiedDate: .datetime
    case .dateOnly: .date
    case .timeOnly: .time
    }
  }
}
