/// Makes a deterministic sequence of events for a set of objects and platform events.
///
/// Equal seed, data, mix, models and times give equal events. Nothing is kept per event, and the number
/// of live records is bounded.
struct EventGenerator {
  /// The properties of an event other than its values.
  struct Event {
    /// Index in `models`.
    var model: Int
    /// A UUID, 36 bytes.
    var id: [UInt8]
    /// Indexes of the pool's records, in the order of `recordIDs`. Empty for events without
    /// records, and for those whose body cannot be enriched.
    var records: [Int]
  }

  /// The common properties of the events of one transaction.
  struct Transaction {
    var key: [UInt8] = []
    var remaining = 0
    var sequenceNumber: Int32 = 0
    var commitTimestamp: Int64 = 0
    /// The milliseconds by which `SystemModstamp` is later.
    var clockDifference: Int64 = 0
    var commitNumber: Int64 = 1_709_303_151_782_928_388
    var user = 0
    var origin = 0
  }

  private(set) var models: [EntityModel]
  /// The records belong to a readable org, so changes that events only hint at are applied to them,
  /// too.
  let keepsRecords: Bool
  let mix: GeneratorMix
  let values: ValueSource
  let seed: UInt64
  private(set) var plans: [ChangePlan]
  private(set) var readers: [RecordReader]
  /// Slots of each model that the user who subscribes may not see; events leave them out.
  var hidden: [Set<Int>]
  let users: [[UInt8]]
  let origins: [[UInt8]]
  /// Share of events that are written with the newest schema version, 0…1.
  var newSchemaShare = 0.0
  var random: RandomStream
  var pools: [RecordPool]
  var transaction = Transaction()
  /// Indexes of the models by object, for references.
  let modelOfEntity: [String: Int]
  /// Objects that have events.
  let objects: [Int]
  /// Makes the changes of its objects; nil for an org in which all are random.
  let team: SalesTeam?
  private let platformEvents: [Int]

  /// - Parameters:
  ///   - published: the objects and platform events that have events, at least one.
  ///   - existing: see `RecordPool`; a sales team needs it.
  init(
    models published: [EntityModel], seed: UInt64, mix: GeneratorMix, data: OrgData = .random,
    existing: Int? = nil
  ) {
    // A deal names its account and its owner, whether these have events or not.
    let unpublished =
      data == .sales
      ? SalesTeam.models.filter { model in !published.contains { $0 === model } } : []
    let models = published + unpublished
    self.models = models
    let team = data == .sales ? SalesTeam(models) : nil
    self.team = team
    self.mix = mix
    let values = ValueSource(mix: mix)
    self.values = values
    self.keepsRecords = existing != nil
    self.seed = seed
    self.random = RandomStream(seed: RandomStream.mix(seed &+ 1))
    self.plans = models.map { ChangePlan($0, hasTrueBooleans: existing != nil) }
    self.hidden = models.map { _ in [] }
    self.pools = models.map { RecordPool(model: $0, existing: existing) }
    self.modelOfEntity = Dictionary(
      models.indices.map { (models[$0].entity, $0) }, uniquingKeysWith: { first, _ in first })
    self.objects = published.indices.filter { models[$0].category == .changeEvent }
    self.platformEvents = models.indices.filter { models[$0].category == .platformEvent }
    let users =
      team == nil
      ? (0..<12).map { RecordID.bytes(prefix: "005", number: 2000 + $0) } : SalesTeam.userIDs
    self.users = users
    self.readers = zip(models, self.plans).enumerated().map { [values] index, pair in
      RecordReader(
        model: pair.0, plan: pair.1, values: values, users: users,
        known: team?.covers(index) == true ? team?.values : nil)
    }
    self.origins = [
      "com/salesforce/api/soap/61.0;client=SfdcInternalAPI/",
      "com/salesforce/api/rest/62.0;client=Astro", "com/salesforce/api/bulk/60.0", "",
    ].map { Array($0.utf8) }
  }

  /// Makes one event.
  ///
  /// - Parameters:
  ///   - time: epoch milliseconds at which it is published; must not decrease.
  ///   - model: index of the model it is for; by default chosen at random.
  ///   - image: gets the values.
  mutating func next(
    at time: Int64, model wanted: Int? = nil, into image: inout EventImage
  ) -> Event {
    let model = wanted ?? self.chooseModel()
    let id = RecordID.uuid(&self.random)
    let versions = self.models[model].versions
    // Records from before the first event have values in every field.
    let isNew = self.random.chance(self.newSchemaShare) || self.keepsRecords
    image.reset(entity: self.models[model], schema: versions[isNew ? versions.count - 1 : 0])
    if self.models[model].category == .platformEvent {
      self.makePlatformEvent(model, at: time, into: &image)
      return Event(model: model, id: id, records: [])
    }
    let records: [Int]
    if let team = self.team, team.covers(model) {
      records = team.makeChange(model, at: time, in: &self, into: &image)
    } else {
      self.continueTransaction(at: time, into: &image)
      records = self.makeChange(model, into: &image)
    }
    self.conceal(model, in: &image)
    for record in records { image.header.recordIDs.append(self.pools[model].records[record].id) }
    return Event(model: model, id: id, records: records)
  }

  /// Puts a model with changed fields in the place of the one it was made of.
  mutating func replace(_ model: Int, by changed: EntityModel) {
    self.models[model] = changed
    self.plans[model] = ChangePlan(changed, hasTrueBooleans: self.keepsRecords)
    self.readers[model] = RecordReader(
      model: changed, plan: self.plans[model], values: self.values, users: self.users,
      known: self.readers[model].known)
  }

  /// The event of a conversion that loses data: any record may have lost the field's value.
  mutating func makeWildcard(_ model: Int, at time: Int64, into image: inout EventImage) -> Event {
    let id = RecordID.uuid(&self.random)
    guard let schema = self.models[model].versions.last else {
      preconditionFailure("\(self.models[model].entity) has no schema")
    }
    image.reset(entity: self.models[model], schema: schema)
    self.continueTransaction(at: time, into: &image)
    self.setWildcard(model, into: &image)
    return Event(model: model, id: id, records: [])
  }

  /// Takes out what the user may not see.
  func conceal(_ model: Int, in image: inout EventImage) {
    let hidden = self.hidden[model]
    guard !hidden.isEmpty else { return }
    for slot in hidden { image.cells[slot] = .null }
    image.header.changed.removeAll { hidden.contains($0) }
    image.header.nulled.removeAll { hidden.contains($0) }
    image.header.diff.removeAll { hidden.contains($0) }
  }

  /// Chooses the object of the next event of a topic that has several.
  mutating func choose(among models: [Int]) -> Int {
    guard let team = self.team else { return models[self.random.below(models.count)] }
    return team.choose(among: models, &self.random)
  }

  private mutating func chooseModel() -> Int {
    let isPlatformEvent =
      self.objects.isEmpty
      || (!self.platformEvents.isEmpty && self.random.chance(self.mix.platformEvents))
    if !isPlatformEvent, self.team != nil { return self.choose(among: self.objects) }
    let list = isPlatformEvent ? self.platformEvents : self.objects
    // the lower of two: the first objects are the busiest
    return list[min(self.random.below(list.count), self.random.below(list.count))]
  }

  private mutating func continueTransaction(at time: Int64, into image: inout EventImage) {
    if self.transaction.remaining == 0 || self.transaction.commitTimestamp + 1000 < time {
      self.transaction.key = RecordID.uuid(&self.random)
      self.transaction.sequenceNumber = 0
      self.transaction.remaining =
        switch self.random.below(100) {
        case 0..<65: 1
        case 65..<88: 2 + self.random.below(2)
        case 88..<99: 4 + self.random.below(7)
        default: 11 + self.random.below(190)
        }
      self.transaction.commitTimestamp = time - time % 1000
      self.transaction.commitNumber += Int64(1 + self.random.below(5000))
      self.transaction.user = self.random.below(self.users.count)
      self.transaction.origin = self.random.below(self.origins.count)
      if self.keepsRecords {
        self.transaction.clockDifference = Int64(self.random.below(6) - 3) * 1000
      }
    }
    self.transaction.remaining -= 1
    // A hole where another, unselected object took a number.
    self.transaction.sequenceNumber += self.random.chance(0.03) ? 2 : 1
    self.fillHeader(of: &image)
  }

  /// Begins a transaction of one event.
  mutating func beginTransaction(at time: Int64, by user: Int, into image: inout EventImage) {
    self.transaction.key = RecordID.uuid(&self.random)
    self.transaction.sequenceNumber = 1
    self.transaction.remaining = 0
    self.transaction.commitTimestamp = time - time % 1000
    self.transaction.commitNumber += Int64(1 + self.random.below(5000))
    self.transaction.user = user
    self.transaction.origin = 0
    self.transaction.clockDifference = Int64(self.random.below(6) - 3) * 1000
    self.fillHeader(of: &image)
  }

  private func fillHeader(of image: inout EventImage) {
    image.header.transactionKey = self.transaction.key
    image.header.sequenceNumber = self.transaction.sequenceNumber
    image.header.commitTimestamp = self.transaction.commitTimestamp
    image.header.commitNumber = self.transaction.commitNumber
    image.header.commitUser = self.users[self.transaction.user]
    image.header.changeOrigin = self.origins[self.transaction.origin]
  }

  private mutating func makePlatformEvent(
    _ model: Int, at time: Int64, into image: inout EventImage
  ) {
    let hash = self.random.next()
    for (index, slot) in self.models[model].slots.enumerated() {
      guard image.schema.positions[index] != nil, let kind = slot.kind else { continue }
      switch kind {
      case .createdDate: image.cells[index] = .long(time)
      case .createdBy:
        image.cells[index] = image.text(self.users[self.random.below(self.users.count)])
      case _ where self.random.chance(self.mix.nulls): break
      default:
        image.cells[index] = self.values.cell(
          kind, record: hash, slot: index, version: 1, into: &image)
      }
    }
  }
}
