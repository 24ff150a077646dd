package import JSON

/// The checkpoint with the sinks and dead letters whose state it holds. One step makes all of it
/// durable.
///
/// Without sinks, it still keeps the dead letters of a pipeline and a copy of its positions. It
/// never answers that it is unavailable: it works or fails.
package final class CheckpointedStore: Store {
  /// Stores everything a resume needs in one atomic, durable step.
  package typealias Save = (
    _ topics: [String: TopicPosition], _ sinks: [String: JSONValue], _ deadLetters: JSONValue
  ) throws -> Void

  /// A name that no sink can have.
  package static let name = "the checkpoint"
  package var name: String { Self.name }

  private let sinks: [StagedSink]
  /// Those of `sinks` that can do more.
  private let buffering: [any BufferingSink]
  private let described: [any DescribedSink]
  private let receivers: [StagedSink]
  /// Those of `receivers` that records of an object come to, by object, once its layout is known.
  private var receiversOfObjects: [String: [StagedSink]] = [:]
  private let deadLetters: any DeadLetterStore
  private let save: Save
  /// The state of each sink in the sealed commit.
  private var states: [String: JSONValue] = [:]
  private var prepared = Commit(positions: [:])

  package init(sinks: [StagedSink], deadLetters: any DeadLetterStore, save: @escaping Save) {
    self.sinks = sinks
    self.buffering = sinks.compactMap { $0.base as? any BufferingSink }
    self.described = sinks.compactMap { $0.base as? any DescribedSink }
    self.receivers = sinks.filter { $0.receiver != nil }
    self.deadLetters = deadLetters
    self.save = save
  }

  /// The stages of the sinks.
  var chains: [StageChain] { self.sinks.compactMap(\.stages) }

  package func write(_ batch: RecordBatch) throws {
    for sink in self.sinks { try sink.write(batch) }
  }

  /// What is written later does not change the state that a sink has returned.
  package func seal(isLast: Bool) throws {
    for sink in self.sinks { self.states[sink.name] = try sink.base.flush(finish: isLast) }
  }

  package func prepare(_ commit: Commit) throws -> StoreAnswer {
    self.prepared = commit
    for letter in commit.letters { try self.deadLetters.append(letter) }
    return .done
  }

  package func commit() throws -> StoreAnswer {
    let letters = try self.deadLetters.flush(finish: self.prepared.isLast)
    try self.save(self.prepared.positions, self.states, letters)
    return .done
  }

  package func complete() throws {
    var hasChanged = try self.deadLetters.committed()
    for sink in self.sinks where try sink.base.committed() { hasChanged = true }
    // During a run the next checkpoint drops what has been completed; the last one has no next.
    if self.prepared.isLast, hasChanged {
      try self.seal(isLast: true)
      _ = try self.commit()
    }
    for sink in self.described {
      try sink.describe(
        self.prepared.positions, lacking: self.deadLetters.waiting, isLast: self.prepared.isLast)
    }
  }

  package var isDue: Bool { self.deadLetters.isDue || self.buffering.contains(where: \.isDue) }

  /// The largest number of pending bytes of any sink.
  package var pendingByteCount: Int {
    self.buffering.reduce(self.deadLetters.pendingByteCount) { max($0, $1.pendingByteCount) }
  }
}

/// Records are read into the sinks that take them.
extension CheckpointedStore: RecordReceiver {
  /// A sink that the route sends no rows of the object to has no pass over it, from then on.
  package func takesReads(of layout: RecordLayout) -> Bool {
    let takers = self.receivers.filter { $0.takesReads(of: layout) }
    self.receiversOfObjects[layout.entity] = takers
    return !takers.isEmpty
  }

  private func receivers(of entity: String) -> [StagedSink] {
    self.receiversOfObjects[entity] ?? self.receivers
  }

  package func needsPass(over entity: String, topic: String) throws -> Bool {
    try self.receivers(of: entity).contains {
      try $0.receiver?.needsPass(over: entity, topic: topic) == true
    }
  }

  /// The place of all sinks; nil if they are not at the same place, for example if one is new.
  package func pass(over key: String) -> ReadPass? {
    let passes = self.receivers(of: ReadPass.entity(ofKey: key))
      .map { $0.receiver?.pass(over: key) }
    guard let first = passes.first ?? nil, passes.allSatisfy({ $0?.isSamePlace(as: first) == true })
    else { return nil }
    return first
  }

  package func passNumber(over key: String) -> Int {
    self.receivers.reduce(0) { max($0, $1.receiver?.passNumber(over: key) ?? 0) }
  }

  /// Those of the sink whose reads are the oldest.
  package func lastReads(of entity: String) -> PollSchedule.LastReads {
    let reads = self.receivers(of: entity).map { $0.receiver?.lastReads(of: entity) ?? .init() }
    func oldest(
      _ path: KeyPath<PollSchedule.LastReads, PollSchedule.Instant?>
    ) -> PollSchedule.Instant? {
      let times = reads.compactMap { $0[keyPath: path] }
      return times.count == reads.count ? times.min() : nil
    }
    return PollSchedule.LastReads(full: oldest(\.full), any: oldest(\.any))
  }

  package func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    for sink in self.receivers { try sink.write(reads, pass: pass) }
  }

  package func noteLeftOut(_ changes: RecordBatch) {
    for sink in self.receivers { sink.receiver?.noteLeftOut(changes) }
  }

  package func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    for sink in self.receivers(of: entity) { sink.receiver?.noteUnreadable(record, of: entity) }
  }

  package func noteDescriptions(_ fields: [FieldDescription], of entity: String) throws {
    for sink in self.receivers(of: entity) {
      try sink.receiver?.noteDescriptions(fields, of: entity)
    }
  }
}

/// Changed records of objects of which the sinks have only a part are read again.
extension CheckpointedStore: RepairingStore {
  package var repairsRecords: Bool {
    self.receivers.contains { $0.receiver?.readsChangedRecords == true }
  }

  package var isIdle: Bool { true }

  package func hasChangedRecords(of entity: String) -> Bool {
    self.receivers(of: entity).contains { $0.receiver?.hasChangedRecords(of: entity) == true }
  }

  /// Those of one sink at a time, because only its own are written into it.
  package func recordsToRepair(
    _ entity: String, after id: String, limit: Int
  ) throws -> [String]? {
    var found: [String] = []
    for sink in self.receivers(of: entity) {
      found +=
        try sink.receiver?.recordsToRead(of: entity, limit: found.isEmpty ? limit : 0) ?? []
    }
    return found
  }

  /// The lines of a record that is not found stay as they are: it may only be hidden from the user.
  package func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64) {}

  package func takeRefusedReads() -> [String: Int] { [:] }

  package func repairCallsOfDay() -> Int {
    self.receivers.reduce(0) { max($0, $1.receiver?.callsToday() ?? 0) }
  }

  package func noteRepairCalls(_ count: Int) {
    for sink in self.receivers { sink.receiver?.noteCalls(count) }
  }
}
