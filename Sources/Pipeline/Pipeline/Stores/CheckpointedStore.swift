public import JSON

/// The checkpoint with the sinks and dead letters whose state it holds. One step makes all of it
/// durable.
///
/// Without sinks, it still keeps the dead letters of a pipeline and a copy of its positions. It
/// never answers that it is unavailable: it works or fails.
public final class CheckpointedStore: Store {
  /// Stores everything a resume needs in one atomic, durable step.
  public typealias Save = (
    _ topics: [String: TopicPosition], _ sinks: [String: JSONValue], _ deadLetters: JSONValue
  ) throws -> Void

  /// A name that no sink can have.
  public static let name = "the checkpoint"
  public var name: String { Self.name }
  public var keepsDeadLetters: Bool { true }

  private let sinks: [any CheckpointedSink]
  private let deadLetters: any DeadLetterStore
  private let save: Save
  /// The state of each sink in the sealed commit.
  private var states: [String: JSONValue] = [:]
  private var prepared = Commit(positions: [:])

  public init(
    sinks: [any CheckpointedSink], deadLetters: any DeadLetterStore, save: @escaping Save
  ) {
    self.sinks = sinks
    self.deadLetters = deadLetters
    self.save = save
  }

  public func write(_ batch: RecordBatch) throws {
    for sink in self.sinks { try sink.write(batch) }
  }

  // MARK: Records that were read

  /// Sinks into which records can be read.
  private var readers: [any CheckpointedSink] { self.sinks.filter(\.takesReads) }

  public func takesReads(of layout: RecordLayout) -> Bool { !self.readers.isEmpty }

  public var hasRefusingStages: Bool { self.sinks.contains(where: \.hasRefusingStages) }

  public func takeRefusedEvents() -> [RefusedEvent] {
    self.sinks.flatMap { $0.takeRefusedEvents() }
  }

  public func takeUnreadable() -> [UnreadableRecord] { self.sinks.flatMap { $0.takeUnreadable() } }

  public func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    for sink in self.readers { sink.noteUnreadable(of: entity) }
  }

  /// The place of all sinks; nil if they are not at the same place, for example if one is new.
  public func pass(over entity: String) -> ReadPass? {
    let passes = self.readers.map { $0.pass(over: entity) }
    guard let first = passes.first ?? nil, passes.allSatisfy({ $0?.isSamePlace(as: first) == true })
    else { return nil }
    return first
  }

  /// Whether the user has requested that a sink read all records of an object.
  public func awaitsReads(of entity: String) -> Bool {
    self.readers.contains { $0.awaitsReads(of: entity) }
  }

  public func passNumber(over entity: String) -> Int {
    self.readers.reduce(0) { max($0, $1.passNumber(over: entity)) }
  }

  /// - Parameter pass: never nil, because records are read by condition or one by one only for
  ///   sinks with tables.
  public func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    guard let pass else { preconditionFailure("\(self.name) takes records of passes only") }
    for sink in self.readers { try sink.write(reads, pass: pass) }
  }

  /// What is written later does not change the state that a sink has returned.
  public func seal(isLast: Bool) throws {
    for sink in self.sinks { self.states[sink.name] = try sink.flush(finish: isLast) }
  }

  public func prepare(_ commit: Commit) throws -> StoreAnswer {
    self.prepared = commit
    for letter in commit.letters { try self.deadLetters.append(letter) }
    return .done
  }

  public func commit() throws -> StoreAnswer {
    let letters = try self.deadLetters.flush(finish: self.prepared.isLast)
    try self.save(self.prepared.positions, self.states, letters)
    return .done
  }

  public func complete() throws {
    var hasChanged = try self.deadLetters.committed()
    for sink in self.sinks where try sink.committed() { hasChanged = true }
    // During a run the next checkpoint drops what has been completed; the last one has no next.
    if self.prepared.isLast, hasChanged {
      try self.seal(isLast: true)
      _ = try self.commit()
    }
    for sink in self.sinks {
      try sink.describe(
        self.prepared.positions, lacking: self.deadLetters.waiting, isLast: self.prepared.isLast)
    }
  }

  public var isDue: Bool { self.deadLetters.isDue || self.sinks.contains(where: \.isDue) }

  /// The largest number of pending bytes of any sink.
  public var pendingByteCount: Int {
    self.sinks.reduce(self.deadLetters.pendingByteCount) { max($0, $1.pendingByteCount) }
  }

  public func memory(ofTopic topic: String) -> StageMemory {
    self.sinks.reduce(into: [:]) { memory, sink in
      memory.merge(sink.memory(ofTopic: topic)) { own, _ in own }
    }
  }

  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    for sink in self.sinks { try sink.recall(memory, ofTopic: topic) }
  }
}
