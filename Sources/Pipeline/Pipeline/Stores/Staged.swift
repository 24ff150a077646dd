/// A sink with its own stages, after those of the pipeline: for example, selected columns to one
/// directory, full lines to another.
///
/// Its stages see the output of the pipeline's stages, and their changes apply only to this sink.
/// The batch is restored, so the order of sinks does not matter.
package struct StagedSink {
  package let base: any CheckpointedSink
  let stages: StageChain?
  let receiver: (any RecordReceiver)?

  /// - Parameter stages: nil for a sink without stages of its own.
  package init(_ base: any CheckpointedSink, stages: StageChain? = nil) {
    self.base = base
    self.stages = stages
    self.receiver = base as? any RecordReceiver
  }

  package var name: String { self.base.name }

  package func write(_ batch: RecordBatch) throws {
    guard let stages else { return try self.base.write(batch) }
    if try !stages.bringsRows(of: batch.layout) { self.receiver?.noteLeftOut(batch) }
    try stages.lend(batch, to: self.base.write)
  }

  /// Whether records can be read into the sink in rows of a layout.
  func takesReads(of layout: RecordLayout) -> Bool {
    guard let receiver else { return false }
    guard let stages else { return receiver.takesReads(of: layout) }
    // For a layout with a mistake, `write` then throws the error.
    guard let output = try? stages.layout(for: layout),
      let brings = try? stages.bringsRows(of: layout)
    else { return true }
    return brings && receiver.takesReads(of: output)
  }

  func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    guard let receiver, self.takesReads(of: reads.layout) else { return }
    guard let stages else { return try receiver.write(reads, pass: pass) }
    try stages.lend(reads) { try receiver.write($0, pass: pass) }
  }
}

/// A store with its own stages, as `StagedSink`, and what it can do.
package final class StagedStore {
  package let base: any Store
  private let stages: StageChain?
  /// The store's stages, and those of the sinks in it.
  private let chains: [StageChain]
  private let tables: (any TableStore)?
  private let receiver: (any RecordReceiver)?
  let leased: (any LeasedStore)?
  let overlapping: (any OverlappingStore)?
  let repairing: (any RepairingStore)?

  /// - Parameter stages: nil for a store without stages of its own.
  package init(_ base: any Store, stages: StageChain? = nil) {
    self.base = base
    self.stages = stages
    self.chains = (base as? CheckpointedStore)?.chains ?? [stages].compactMap { $0 }
    self.tables = base as? any TableStore
    self.receiver = base as? any RecordReceiver
    self.leased = base as? any LeasedStore
    self.overlapping = base as? any OverlappingStore
    let repairing = base as? any RepairingStore
    self.repairing = repairing?.repairsRecords == true ? repairing : nil
  }

  package var name: String { self.base.name }

  /// Whether this store keeps the dead letters, durable with its position. Exactly one store of a
  /// run does.
  var keepsDeadLetters: Bool { self.base is CheckpointedStore }

  // MARK: Rows

  func isReady(for layout: RecordLayout) -> Bool {
    guard let tables else { return true }
    // For a layout with a mistake, `makeReady` then throws the error.
    guard let output = try? self.output(of: layout), let brings = try? self.bringsRows(of: layout)
    else { return false }
    return !brings || tables.isReady(for: output)
  }

  package func makeReady(for layout: RecordLayout) throws -> StoreAnswer {
    guard let tables, try self.bringsRows(of: layout) else { return .done }
    return try tables.makeReady(for: self.output(of: layout))
  }

  func noteCurrent(_ layout: RecordLayout) { self.tables?.noteCurrent(layout) }
  func noteRecent(_ layout: RecordLayout) { self.tables?.noteRecent(layout) }

  package func write(_ batch: RecordBatch) throws {
    guard let stages else { return try self.base.write(batch) }
    // The base is not prepared for such rows.
    guard try stages.bringsRows(of: batch.layout) else { return self.noteLeftOut(batch) }
    try stages.lend(batch, to: self.base.write)
  }

  private func output(of layout: RecordLayout) throws -> RecordLayout {
    try self.stages?.layout(for: layout) ?? layout
  }

  private func bringsRows(of layout: RecordLayout) throws -> Bool {
    try self.stages?.bringsRows(of: layout) ?? true
  }

  // MARK: Records that were read

  func takesReads(of layout: RecordLayout) -> Bool {
    guard let receiver, let output = try? self.output(of: layout),
      let brings = try? self.bringsRows(of: layout)
    else { return false }
    return brings && receiver.takesReads(of: output)
  }

  func pass(over key: String) -> ReadPass? { self.receiver?.pass(over: key) }

  func passNumber(over key: String) -> Int { self.receiver?.passNumber(over: key) ?? 0 }

  func lastReads(of entity: String) -> PollSchedule.LastReads {
    self.receiver?.lastReads(of: entity) ?? .init()
  }

  func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    guard let receiver else { preconditionFailure("\(self.name) takes no records that were read") }
    guard let stages else { return try receiver.write(reads, pass: pass) }
    try stages.lend(reads) { try receiver.write($0, pass: pass) }
  }

  func noteLeftOut(_ changes: RecordBatch) { self.receiver?.noteLeftOut(changes) }

  func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    self.receiver?.noteUnreadable(record, of: entity)
  }

  // MARK: Stages

  /// Whether the store's own stages may refuse events.
  var hasRefusingStages: Bool { self.chains.contains(where: \.changesRows) }

  /// Events that the store's own stages have refused since the last call.
  func takeRefusedEvents() -> [RefusedEvent] { self.chains.flatMap { $0.takeRefusedEvents() } }

  /// Records that were read and that the store's own stages have refused since the last call.
  func takeUnreadable() -> [UnreadableRecord] { self.chains.flatMap { $0.takeUnreadable() } }

  /// The memory of the store's own stages about a topic; see `Transform.memory`.
  func memory(ofTopic topic: String) -> StageMemory {
    self.chains.reduce(into: [:]) { memory, chain in
      memory.merge(chain.memory(ofTopic: topic)) { own, _ in own }
    }
  }

  /// - Parameter memory: as stored with the position of this store.
  func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    for chain in self.chains { try chain.recall(memory, ofTopic: topic) }
  }
}
