public import JSON

/// A sink or store with its own stages, after those of the pipeline: for example, selected columns
/// to one directory, full lines to another.
///
/// Its stages see the output of the pipeline's stages, and their changes apply only to this sink.
/// The batch is restored, so the order of sinks does not matter.
public final class Staged<Base> {
  private let base: Base
  private let stages: StageChain
  /// The copy that row-changing stages work on; its memory is reused.
  private var copy: RecordBatch?

  public init(_ base: Base, stages: StageChain) {
    self.base = base
    self.stages = stages
  }

  private func lend(_ batch: RecordBatch, to body: (RecordBatch) throws -> Void) throws {
    guard self.stages.changesRows else { return try self.stages.lend(batch, to: body) }
    let copy = self.copy ?? RecordBatch(layout: batch.layout)
    self.copy = copy
    copy.replaceAll(with: batch)
    try self.stages.apply(to: copy)
    try body(copy)
  }
}

extension Staged: CheckpointedSink where Base: CheckpointedSink {
  public var name: String { self.base.name }
  public var isDue: Bool { self.base.isDue }
  public var pendingByteCount: Int { self.base.pendingByteCount }
  public func recover(from state: JSONValue?) throws { try self.base.recover(from: state) }
  public func write(_ batch: RecordBatch) throws { try self.lend(batch, to: self.base.write) }
  public var takesReads: Bool { self.base.takesReads }
  public func pass(over entity: String) -> ReadPass? { self.base.pass(over: entity) }
  public func passNumber(over entity: String) -> Int { self.base.passNumber(over: entity) }
  public func write(_ reads: RecordBatch, pass: ReadPass) throws {
    try self.lend(reads) { try self.base.write($0, pass: pass) }
  }
  public func flush(finish: Bool) throws -> JSONValue { try self.base.flush(finish: finish) }
  public func committed() throws -> Bool { try self.base.committed() }
  public func describe(
    _ positions: [String: TopicPosition], lacking letters: () -> WaitingLetters, isLast: Bool
  ) throws {
    try self.base.describe(positions, lacking: letters, isLast: isLast)
  }
  public var hasRefusingStages: Bool { self.stages.changesRows }
  public func takeRefusedEvents() -> [RefusedEvent] { self.stages.takeRefusedEvents() }
  public func takeUnreadable() -> [UnreadableRecord] { self.stages.takeUnreadable() }
  public func noteUnreadable(of entity: String) { self.base.noteUnreadable(of: entity) }
  public func memory(ofTopic topic: String) -> StageMemory {
    self.stages.memory(ofTopic: topic)
  }
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    try self.stages.recall(memory, ofTopic: topic)
  }
}

extension Staged: Store where Base: Store {
  public var name: String { self.base.name }
  public var keepsDeadLetters: Bool { self.base.keepsDeadLetters }
  public var isDue: Bool { self.base.isDue }
  public var pendingByteCount: Int { self.base.pendingByteCount }
  public func isReady(for layout: RecordLayout) -> Bool {
    // For a layout with a mistake, `makeReady` then throws the error.
    guard let output = try? self.stages.layout(for: layout),
      let brings = try? self.stages.bringsRows(of: layout)
    else { return false }
    return !brings || self.base.isReady(for: output)
  }
  public func makeReady(for layout: RecordLayout) throws -> StoreAnswer {
    guard try self.stages.bringsRows(of: layout) else { return .done }
    return try self.base.makeReady(for: self.stages.layout(for: layout))
  }
  public func noteCurrent(_ layout: RecordLayout) { self.base.noteCurrent(layout) }
  public func write(_ batch: RecordBatch) throws {
    // The base is not prepared for such rows.
    guard try self.stages.bringsRows(of: batch.layout) else { return }
    try self.lend(batch, to: self.base.write)
  }
  public func takesReads(of layout: RecordLayout) -> Bool {
    guard let output = try? self.stages.layout(for: layout),
      let brings = try? self.stages.bringsRows(of: layout)
    else { return false }
    return brings && self.base.takesReads(of: output)
  }
  public func pass(over entity: String) -> ReadPass? { self.base.pass(over: entity) }
  public func awaitReads(of entity: String) throws { try self.base.awaitReads(of: entity) }
  public func fields(of entity: String) throws -> [String] { try self.base.fields(of: entity) }
  public func noteAccess(
    _ access: [String: FieldAccess], of entity: String
  ) throws -> [FillingColumn] {
    try self.base.noteAccess(access, of: entity)
  }
  public func passNumber(over entity: String) -> Int { self.base.passNumber(over: entity) }
  public func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    try self.lend(reads) { try self.base.write($0, pass: pass) }
  }
  public var isIdle: Bool { self.base.isIdle }
  public func needsPass(over entity: String, topic: String) throws -> Bool {
    try self.base.needsPass(over: entity, topic: topic)
  }
  public func recordsToRepair(_ entity: String, after id: String, limit: Int) throws -> [String]? {
    try self.base.recordsToRepair(entity, after: id, limit: limit)
  }
  public func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64) {
    self.base.noteUnseen(records, of: entity, epoch: epoch, ordinal: ordinal)
  }
  public func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    self.base.noteUnreadable(record, of: entity)
  }
  public func repairCallsOfDay() throws -> Int { try self.base.repairCallsOfDay() }
  public func noteRepairCalls(_ count: Int) { self.base.noteRepairCalls(count) }
  public func seal(isLast: Bool) throws { try self.base.seal(isLast: isLast) }
  public func prepare(_ commit: Commit) throws -> StoreAnswer { try self.base.prepare(commit) }
  public func commit() throws -> StoreAnswer { try self.base.commit() }
  public func retract() { self.base.retract() }
  public func complete() throws { try self.base.complete() }
  public func renewLease() throws { try self.base.renewLease() }
  public var hasRefusingStages: Bool { self.stages.changesRows }
  public func takeRefusedEvents() -> [RefusedEvent] { self.stages.takeRefusedEvents() }
  public func takeUnreadable() -> [UnreadableRecord] { self.stages.takeUnreadable() }
  public func takeRefusedReads() -> [String: Int] { self.base.takeRefusedReads() }
  public func memory(ofTopic topic: String) -> StageMemory {
    self.stages.memory(ofTopic: topic)
  }
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    try self.stages.recall(memory, ofTopic: topic)
  }
}
