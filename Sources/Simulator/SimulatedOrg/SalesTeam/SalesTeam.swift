/// A team that sells: makes users, accounts, contacts and opportunities, and changes them.
///
/// Confined to one thread at a time by its owner.
final class SalesTeam {
  typealias Values = [(path: String, value: ValueTable.Value?)]

  /// A record that follows a new account: a contact, and then a deal.
  struct FollowUp {
    var model: Int
    var account: Int
  }

  static let models = [EntityModel.opportunity, .account, .contact, .user]

  let values = ValueTable()
  /// Places among the generator's models.
  let opportunity: Int
  let account: Int
  let contact: Int
  let user: Int
  /// Contacts of each account, by their places in the pools.
  var contacts: [Int: [Int]] = [:]
  var followUps: [FollowUp] = []
  var deals = Deck<DealCard>(DealCard.counts)
  var customers = Deck<CustomerCard>(CustomerCard.accountCounts)
  var people = Deck<CustomerCard>(CustomerCard.contactCounts)

  /// - Parameter models: the generator's; those of the team are among them.
  init(_ models: [EntityModel]) {
    func place(_ model: EntityModel) -> Int {
      guard let place = models.firstIndex(where: { $0 === model }) else {
        preconditionFailure("a sales team has no \(model.entity)")
      }
      return place
    }
    self.opportunity = place(.opportunity)
    self.account = place(.account)
    self.contact = place(.contact)
    self.user = place(.user)
  }

  /// IDs of the users, by their places in the team.
  static var userIDs: [[UInt8]] {
    Salesperson.team.indices.map { RecordPool.id(EntityModel.user.keyPrefix, of: UInt32($0 + 1)) }
  }

  func covers(_ model: Int) -> Bool {
    [self.opportunity, self.account, self.contact, self.user].contains(model)
  }

  /// Chooses the object of the next event: that of a waiting follow-up, else mostly opportunities.
  func choose(among models: [Int], _ random: inout RandomStream) -> Int {
    if let next = self.followUps.first, models.contains(next.model) { return next.model }
    let weights = models.map { model in
      switch model {
      case self.opportunity: 24
      case self.contact: 4
      case self.account: 3
      default: 1
      }
    }
    var rest = random.below(weights.reduce(0, +))
    for (model, weight) in zip(models, weights) {
      if rest < weight { return model }
      rest -= weight
    }
    preconditionFailure("the number is less than the sum of the weights")
  }

  /// Makes one change of an object: changes the records and fills header and body. Returns the records
  /// concerned.
  func makeChange(
    _ model: Int, at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int] {
    let next = self.followUps.first.flatMap { $0.model == model ? $0 : nil }
    if next != nil { self.followUps.removeFirst() }
    switch model {
    case self.opportunity:
      return self.changeDeal(ofNew: next?.account, at: time, in: &generator, into: &image)
    case self.contact:
      return self.changeContact(ofNew: next?.account, at: time, in: &generator, into: &image)
    case self.account: return self.changeAccount(at: time, in: &generator, into: &image)
    default: return self.changeUser(at: time, in: &generator, into: &image)
    }
  }

  // MARK: Values

  func value(
    _ model: Int, _ record: Int, _ path: String, in generator: EventGenerator
  ) -> ValueTable.Value? {
    generator.models[model].slotOf[path].flatMap {
      self.values[generator.pools[model][record, $0]]
    }
  }

  func text(_ model: Int, _ record: Int, _ path: String, in generator: EventGenerator) -> String? {
    guard case .text(let text) = self.value(model, record, path, in: generator) else { return nil }
    return text
  }

  func number(_ model: Int, _ record: Int, _ path: String, in generator: EventGenerator) -> Double {
    guard case .number(let number) = self.value(model, record, path, in: generator) else {
      return 0
    }
    return number
  }

  func time(_ model: Int, _ record: Int, _ path: String, in generator: EventGenerator) -> Int64 {
    guard case .time(let time) = self.value(model, record, path, in: generator) else { return 0 }
    return time
  }

  func id(_ model: Int, _ record: Int, in generator: EventGenerator) -> ValueTable.Value {
    .text(String(decoding: generator.pools[model].records[record].id, as: UTF8.self))
  }

  static func userID(_ place: Int, in generator: EventGenerator) -> ValueTable.Value {
    .text(String(decoding: generator.users[place], as: UTF8.self))
  }

  /// The place in the team of a record's owner.
  func owner(_ model: Int, _ record: Int, in generator: EventGenerator) -> Int {
    let id = self.text(model, record, "OwnerId", in: generator).map { Array($0.utf8) }
    return generator.users.firstIndex { $0 == id } ?? 0
  }

  // MARK: Records

  /// Makes a record with these values. Its other checkboxes are not ticked, its other fields are
  /// empty.
  func create(
    _ model: Int, _ values: Values, at time: Int64, by user: Int, in generator: inout EventGenerator
  ) -> Int {
    let record = generator.pools[model].create(
      seed: generator.seed, at: time, by: user, mayBePerson: false)
    let plan = generator.plans[model]
    for (slot, kind) in plan.kinds.enumerated()
    where kind == .boolean && !plan.creations[slot].isOfPersons {
      generator.pools[model][record, slot] = self.values.number(of: .boolean(false))
    }
    for (path, value) in values {
      guard let slot = self.slot(path, for: value, model, in: generator) else { continue }
      self.set(model, [record], slot, to: self.values.number(of: value), in: &generator)
    }
    return record
  }

  /// Makes a record by an event.
  func create(
    _ model: Int, _ values: Values, at time: Int64, by user: Int,
    in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> Int {
    generator.beginTransaction(at: time, by: user, into: &image)
    image.header.changeType = .create
    let record = self.create(
      model, values, at: generator.transaction.commitTimestamp, by: user, in: &generator)
    generator.pools[model].stamp(record, at: generator.systemModstamp)
    generator.fill(model, record, into: &image)
    return record
  }

  /// Gives records the same values by one event, which names the fields that change.
  func update(
    _ model: Int, _ records: [Int], _ values: Values, at time: Int64, by user: Int,
    in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int] {
    generator.beginTransaction(at: time, by: user, into: &image)
    image.header.changeType = .update
    for (path, value) in values {
      guard let slot = self.slot(path, for: value, model, in: generator) else { continue }
      let number = self.values.number(of: value)
      guard records.contains(where: { generator.pools[model][$0, slot] != number }) else {
        continue
      }
      self.set(model, records, slot, to: number, in: &generator)
      image.header.changed.append(slot)
      if value == nil {
        image.header.nulled.append(slot)
      } else {
        generator.setCell(model, records[0], slot, into: &image)
      }
      if let parent = generator.plans[model].creations[slot].parent {
        generator.setCell(model, records[0], parent, into: &image)
      }
    }
    generator.stamp(model, records, into: &image)
    return records
  }

  private func set(
    _ model: Int, _ records: [Int], _ slot: Int, to number: UInt32,
    in generator: inout EventGenerator
  ) {
    let parent = generator.plans[model].creations[slot].parent
    for record in records {
      generator.pools[model][record, slot] = number
      if let parent, number != 0 {
        generator.pools[model][record, parent] = self.values.number(of: .present)
      }
    }
  }

  /// The slot of a field; nil for one that an admin has deleted or converted.
  private func slot(
    _ path: String, for value: ValueTable.Value?, _ model: Int, in generator: EventGenerator
  ) -> Int? {
    let entity = generator.models[model]
    guard let slot = entity.slotOf[path], entity.versions.last?.positions[slot] != nil,
      value?.fits(entity.slots[slot].kind) ?? true
    else { return nil }
    return slot
  }
}
