/// Makes events, keeps them in the log and writes the truth.
///
/// Confined to one thread at a time by its owner.
package final class EventPublisher {
  let log: EventLog
  var generator: EventGenerator
  private let truth: TruthWriter?
  private let topics: [Topic]
  /// Topics of each model, split by whether they enrich.
  private var plainTopics: [[String]]
  private var enrichedTopics: [[(name: String, slots: [Int])]]
  private var image: EventImage
  private var payload: [UInt8] = []
  private var encoded: [UInt8] = []
  package private(set) var published = 0
  /// The records as REST shows them; nil for an org without REST.
  private(set) var store: RecordStore?

  package init(
    topics: [Topic], log: EventLog, seed: UInt64, mix: GeneratorMix, truth: TruthWriter?,
    data: OrgData = .random, existing: Int? = nil
  ) {
    var models: [EntityModel] = []
    for topic in topics {
      for model in topic.members where !models.contains(where: { $0 === model }) {
        models.append(model)
      }
    }
    self.topics = topics
    self.log = log
    self.truth = truth
    self.generator = EventGenerator(
      models: models, seed: seed, mix: mix, data: data, existing: existing)
    self.image = EventImage(entity: models[0], schema: models[0].versions[0])
    self.plainTopics = self.generator.models.map { model in
      topics.filter { topic in !topic.isEnriched && topic.members.contains { $0 === model } }
        .map(\.name)
    }
    self.enrichedTopics = self.generator.models.map { model in
      topics.filter { topic in topic.isEnriched && topic.members.contains { $0 === model } }
        .map { topic in
          let names = topic.enrichedFields[model.entity, default: []]
          return (
            topic.name,
            names.compactMap { name in model.slots.firstIndex { $0.path == name } }
          )
        }
    }
  }

  /// Share of new events that use the newest schema version.
  package func useNewSchemas(share: Double) {
    self.generator.newSchemaShare = share
  }

  /// The version that `GetTopic` names.
  package func currentSchema(of model: EntityModel) -> EventSchema? {
    // Topics keep the models they began with.
    let model = self.generator.models.first { $0.entity == model.entity } ?? model
    return self.generator.newSchemaShare > 0 || self.generator.keepsRecords
      ? model.versions.last : model.versions.first
  }

  /// Publishes one generated event.
  ///
  /// - Parameters:
  ///   - time: epoch milliseconds; must not decrease.
  ///   - topic: only for objects that this topic has; by default any.
  package func publish(at time: Int64, topic: String? = nil) throws {
    var model: Int?
    if let topic, let members = self.topics.first(where: { $0.name == topic })?.members {
      model = self.generator.choose(
        among: members.compactMap { member in
          self.generator.models.firstIndex { $0.entity == member.entity }
        })
    }
    let event = self.generator.next(at: time, model: model, into: &self.image)
    try self.place(event, at: time)
    guard let store = self.store else { return }
    self.generator.drift(at: time)
    self.showChanges(in: store, at: time)
  }

  /// Makes the records that exist before the first event, and shows all records from now on.
  func showRecords(in store: RecordStore, existing: Int, before time: Int64, now: Int64) {
    self.generator.addExisting(existing, until: time, now: now)
    self.store = store
    self.showChanges(in: store, at: time)
  }

  private func showChanges(in store: RecordStore, at time: Int64) {
    for model in self.generator.models.indices {
      store.take(from: &self.generator.pools[model], model: model, at: time)
    }
  }

  /// Publishes what a client sent. Returns the replay ID on `topic`.
  package func publish(
    _ image: EventImage, payload: [UInt8], id: [UInt8], topic: String, at time: Int64
  ) throws -> UInt64 {
    guard let model = self.generator.models.firstIndex(where: { $0.entity == image.entity.entity })
    else {
      preconditionFailure("\(image.entity.entity) is not served")
    }
    self.payload = payload
    self.image = image
    var result: UInt64 = 0
    self.truth?.begin(image, id: id, at: time)
    let offset = try self.store(id: id)
    for name in self.plainTopics[model] {
      let number = self.log.advance(name)
      self.log.place(
        name, offset: offset, byteCount: self.encoded.count, replayNumber: number, at: time)
      try self.truth?.line(topic: name, replayNumber: number)
      if name == topic { result = number }
    }
    self.published += 1
    return result
  }

  func writeState(to path: String) throws {
    try StateWriter.write(self.generator, to: path)
  }

  package func flush() throws {
    try self.truth?.flush()
  }

  /// Publishes the event of a conversion that loses data.
  func publishWildcard(_ model: Int, at time: Int64) throws {
    try self.place(
      self.generator.makeWildcard(model, at: time, into: &self.image), at: time)
  }

  /// Moves the stamps of the records that have a choice of an edited picklist, without an event.
  func stampRecords(of model: Int, slot: Int, withChoice value: String, at time: Int64) {
    self.generator.stampRecords(of: model, slot: slot, withChoice: value, at: time)
    if let store = self.store { self.showChanges(in: store, at: time) }
  }

  private func place(_ event: EventGenerator.Event, at time: Int64) throws {
    let plain = self.plainTopics[event.model]
    if !plain.isEmpty {
      let offset = try self.encodeAndStore(event, at: time)
      for name in plain {
        let number = self.log.advance(name)
        self.log.place(
          name, offset: offset, byteCount: self.encoded.count, replayNumber: number, at: time)
        try self.truth?.line(topic: name, replayNumber: number)
      }
    }
    for (name, slots) in self.enrichedTopics[event.model] {
      try self.placeEnriched(event, topic: name, slots: slots, at: time)
    }
    self.published += 1
  }

  /// One event per record, with the record's current values in the enriched fields, all under one replay ID.
  private func placeEnriched(
    _ event: EventGenerator.Event, topic: String, slots: [Int], at time: Int64
  ) throws {
    let number = self.log.advance(topic)
    let isSplit = self.image.kind == .change && event.records.count > 1
    let mayEnrich =
      self.image.kind == .change
      && (self.image.header.changeType == .update || self.image.header.changeType == .delete)
    let allIDs = self.image.header.recordIDs
    // the arena only grows while values are added; it is small and reset by the next event
    for (index, record) in event.records.enumerated() where mayEnrich || isSplit {
      if isSplit { self.image.header.recordIDs = [allIDs[index]] }
      for slot in slots where !self.image.header.changed.contains(slot) && mayEnrich {
        guard self.image.schema.positions[slot] != nil else { continue }
        self.generator.setCell(event.model, record, slot, into: &self.image)
      }
      self.generator.conceal(event.model, in: &self.image)
      try self.placeOne(event, topic: topic, number: number, at: time)
      if !isSplit { break }
    }
    if !mayEnrich && !isSplit || event.records.isEmpty {
      try self.placeOne(event, topic: topic, number: number, at: time)
    }
    self.image.header.recordIDs = allIDs
  }

  private func placeOne(
    _ event: EventGenerator.Event, topic: String, number: UInt64, at time: Int64
  ) throws {
    let offset = try self.encodeAndStore(event, at: time)
    self.log.place(
      topic, offset: offset, byteCount: self.encoded.count, replayNumber: number, at: time)
    try self.truth?.line(topic: topic, replayNumber: number)
  }

  private func encodeAndStore(_ event: EventGenerator.Event, at time: Int64) throws -> UInt64 {
    self.payload.removeAll(keepingCapacity: true)
    self.image.encode(to: &self.payload)
    self.truth?.begin(self.image, id: event.id, at: time)
    return try self.store(id: event.id)
  }

  /// Wraps `payload` into the `event` field of a ConsumerEvent.
  private func store(id: [UInt8]) throws -> UInt64 {
    let schema = self.image.schema.idBytes
    let count =
      WireWriter.fieldSize(id.count) + WireWriter.fieldSize(schema.count)
      + WireWriter.fieldSize(self.payload.count)
    self.encoded.removeAll(keepingCapacity: true)
    WireWriter.appendLength(field: 1, count: count, to: &self.encoded)
    WireWriter.appendField(1, id, to: &self.encoded)
    WireWriter.appendField(2, schema, to: &self.encoded)
    WireWriter.appendField(3, self.payload, to: &self.encoded)
    return try self.log.store(self.encoded)
  }
}
