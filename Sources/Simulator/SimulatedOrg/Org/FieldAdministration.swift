/// Changes of fields between the org's events.
///
/// As Salesforce does it: no change moves `SystemModstamp`, apart from a picklist value's new name, and
/// only conversions that lose data have an event, which names no record
/// (ChangeEvents.md#gaps-overflows-and-wildcards).
struct FieldAdministration {
  /// Deleted fields by `Object.Field`, with their places.
  private var deleted: [String: (field: Field, place: Int)] = [:]
  /// `Object.Field`
  private var hidden: Set<String>
  private var added = 0

  /// - Parameter hidden: fields that the user may not see from the start; events have them all the same.
  init(hidden: Set<String>) { self.hidden = hidden }

  mutating func perform(
    _ change: FieldChange, with publisher: EventPublisher, log: EventLog, at time: Int64
  ) throws {
    guard let store = publisher.store,
      let model = publisher.generator.models.firstIndex(where: { $0.entity == change.object }),
      publisher.generator.models[model].category == .changeEvent
    else {
      throw SimulatorError(
        .configuration,
        "\(change.object) is not an object with records; start the simulator with --existing")
    }
    let name = "\(change.object).\(change.field)"
    let isHidden: Bool? =
      switch change.action {
      case .hide: true
      case .show: false
      default: nil
      }
    if let isHidden {
      // No event has some formulas.
      let isOfEvents = !OrgFormula.allCases.contains { $0.name == change.field }
      let slot = isOfEvents ? try Self.slot(change, publisher.generator.models[model]) : nil
      if isHidden {
        self.hidden.insert(name)
        if let slot { publisher.generator.hidden[model].insert(slot) }
      } else {
        self.hidden.remove(name)
        if let slot { publisher.generator.hidden[model].remove(slot) }
      }
      store.replace(publisher.generator.readers[model], model: model, hidden: self.hidden)
      return
    }
    let isOfEvents = publisher.generator.models[model].versions.last?.fields
      .contains { $0.name == change.field }
    if change.action == .edit, isOfEvents == false,
      let formula = OrgFormula.allCases.first(where: { $0.name == change.field })
    {
      store.edit(formula)
      store.replace(publisher.generator.readers[model], model: model, hidden: self.hidden)
      return
    }
    if case .picklist = change.action, publisher.generator.team?.covers(model) == true {
      throw Self.refusal("the picklists of a sales team stay as they are; use --data random")
    }
    let (fields, fill) = try self.fields(change, of: publisher.generator.models[model])
    var names = EntityModel.NameChange()
    switch change.action {
    case .add: names.given = change.field
    case .rename(let name): (names.given, names.former) = (name, change.field)
    default: break
    }
    self.give(names, of: change.object)
    let changed = EntityModel(publisher.generator.models[model], fields: fields, names)
    publisher.generator.replace(model, by: changed)
    if let schema = changed.versions.last { log.add(schema) }
    if let version = fill, let slot = changed.slotOf[change.field] {
      publisher.generator.pools[model].fill(slot, with: version)
      store.fill(slot, with: version, model: model)
    }
    store.replace(publisher.generator.readers[model], model: model, hidden: self.hidden)
    if case .convert = change.action, fill != nil { try publisher.publishWildcard(model, at: time) }
    if case .picklist(.rename(_, let value)) = change.action,
      let slot = changed.slotOf[change.field]
    {
      publisher.stampRecords(of: model, slot: slot, withChoice: value, at: time)
    }
  }

  /// A deleted field cannot be restored after another field got its name.
  private mutating func give(_ names: EntityModel.NameChange, of object: String) {
    guard let given = names.given else { return }
    self.deleted["\(object).\(given)"] = nil
    self.hidden.remove("\(object).\(given)")
    if let former = names.former, self.hidden.remove("\(object).\(former)") != nil {
      self.hidden.insert("\(object).\(given)")
    }
  }

  /// The fields after a change, and what all records get as the field's value.
  private mutating func fields(
    _ change: FieldChange, of model: EntityModel
  ) throws -> ([Field], UInt32?) {
    var fields = model.versions.last?.fields ?? []
    let name = "\(change.object).\(change.field)"
    let place = fields.firstIndex { $0.name == change.field }
    switch change.action {
    case .add(let type):
      try Self.checkFree(change.field, fields, change.object)
      self.added += 1
      fields.append(try self.field(change.field, type, of: model, number: self.added))
      return (fields, type == .checkbox ? ValueSource.Version.unchecked : 0)
    case .convert(let type):
      guard let place else { throw Self.refusal("\(name) does not exist") }
      try Self.checkCustom(change, model)
      let parts = fields[place].doc.split(separator: ":")
      let id = parts.count > 2 ? ":\(parts[2])" : ""
      guard case .scalar(_, let kind) = fields[place].shape else {
        throw Self.refusal("\(name) is a compound field")
      }
      switch (kind, type) {
      case (.number, .text), (.currency, .text), (.percent, .text):
        fields[place] = .scalar(change.field, .string, .textOf(kind), "Data:Text\(id)")
        return (fields, nil)
      case (.text, .number), (.textOf, .number), (.picklist, .number), (.choices, .number):
        fields[place] = .scalar(change.field, .double, .number, "Data:Double\(id)")
      case (.dateOnly, .dateTime):
        fields[place] = .scalar(change.field, .long, .dateTime, "Data:DateTime\(id)")
      case (.dateTime, .date):
        fields[place] = .scalar(change.field, .long, .dateOnly, "Data:DateOnly\(id)")
      default: throw Self.refusal("\(name) cannot be converted that way here")
      }
      return (fields, 0)
    case .edit:
      guard let place, case .scalar(_, .formula(let slot, let edition)) = fields[place].shape else {
        throw Self.refusal("\(name) is not a formula")
      }
      fields[place] = .scalar(
        change.field, .double, .formula(slot: slot, edition: edition + 1), fields[place].doc)
      return (fields, nil)
    case .rename(let newName):
      guard let place else { throw Self.refusal("\(name) does not exist") }
      try Self.checkCustom(change, model, mayBeReferenced: true)
      try Self.checkFree(newName, fields, change.object)
      fields[place].name = newName
      return (fields, nil)
    case .delete:
      guard let place else { throw Self.refusal("\(name) does not exist") }
      try Self.checkCustom(change, model)
      self.deleted[name] = (fields.remove(at: place), place)
      return (fields, nil)
    case .undelete:
      guard let (field, place) = self.deleted.removeValue(forKey: name) else {
        throw Self.refusal("\(name) was not deleted")
      }
      fields.insert(field, at: min(place, fields.count))
      return (fields, nil)
    case .picklist(let change):
      guard let place, case .scalar(let type, let kind) = fields[place].shape,
        var list = Picklist(kind)
      else { throw Self.refusal("\(name) is not a picklist") }
      try list.apply(change)
      fields[place].shape = .scalar(type, .choices(list))
      return (fields, nil)
    case .hide, .show: preconditionFailure("these do not change the schema")
    }
  }

  private func field(
    _ name: String, _ type: FieldChange.FieldType, of model: EntityModel, number: Int
  ) throws -> Field {
    let digits = String(number)
    let id = "00NDp00000A" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    switch type {
    case .text: return .scalar(name, .string, .text, "Data:Text:\(id)")
    case .number: return .scalar(name, .double, .number, "Data:Double:\(id)")
    case .checkbox: return .scalar(name, .boolean, .boolean, "Data:Boolean:\(id)")
    case .date: return .scalar(name, .long, .dateOnly, "Data:DateOnly:\(id)")
    case .dateTime: return .scalar(name, .long, .dateTime, "Data:DateTime:\(id)")
    case .formula(let source):
      guard let slot = model.slotOf[source],
        case .scalar(.double, let kind) = model.versions.last?.fields
          .first(where: { $0.name == source })?.shape,
        [.number, .currency, .percent].contains(kind)
      else { throw Self.refusal("\(source) is not a number field of \(model.entity)") }
      return .scalar(name, .double, .formula(slot: slot, edition: 0), "Data:Double:\(id)")
    }
  }

  private static func checkFree(_ name: String, _ fields: [Field], _ object: String) throws {
    guard name.hasSuffix("__c"), !fields.contains(where: { $0.name == name }) else {
      throw Self.refusal("\(object).\(name) exists, or does not end with __c")
    }
  }

  private static func slot(_ change: FieldChange, _ model: EntityModel) throws -> Int {
    try self.checkCustom(change, model, mayBeReferenced: true)
    guard let slot = model.slotOf[change.field], model.versions.last?.positions[slot] != nil else {
      throw self.refusal("\(change.object).\(change.field) does not exist")
    }
    return slot
  }

  /// Salesforce neither deletes nor converts fields that a formula uses.
  private static func checkCustom(
    _ change: FieldChange, _ model: EntityModel, mayBeReferenced: Bool = false
  ) throws {
    guard change.field.hasSuffix("__c"), let slot = model.slotOf[change.field],
      model.firstChild[slot] == nil
    else {
      throw self.refusal(
        "\(change.object).\(change.field) is not a custom field with a single value")
    }
    let isUsed = zip(model.slots, model.versions.last?.positions ?? []).contains {
      guard case .formula(slot, _) = $0.kind else { return false }
      return $1 != nil
    }
    if isUsed, !mayBeReferenced {
      throw self.refusal("\(change.object).\(change.field) is used by a formula")
    }
  }

  private static func refusal(_ message: String) -> SimulatorError {
    SimulatorError(.configuration, message)
  }
}
