public import JSON

/// The checkpoint with the sinks and dead letters whose state it holds: one step makes all durable.
///
/// Without sinks it still keeps the dead letters of a pipeline, and a copy of its positions.
public final class CheckpointedStore: Store {
  /// Stores everything a resume needs in one atomic, durable step.
  public typealias Save = (
    _ topics: [String: TopicPosition], _ sinks: [String: JSONValue], _ deadLetters: JSONValue
  ) throws -> Void

  public let name = "checkpoint"
  public var keepsDeadLetters: Bool { true }

  private let sinks: [any CheckpointedSink]
  private let deadLetters: any DeadLetterStore
  private let save: Save
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

  public func take(_ letter: DeadLetter) throws { try self.deadLetters.append(letter) }

  public func prepare(_ commit: Commit) -> [RefusedEvent] {
    self.prepared = commit
    return []
  }

  public func commit() throws {
    var states: [String: JSONValue] = [:]
    for sink in self.sinks { states[sink.name] = try sink.flush(finish: self.prepared.isLast) }
    let letters = try self.deadLetters.flush(finish: self.prepared.isLast)
    try self.save(self.prepared.positions, states, letters)
  }

  public func complete() throws {
    var hasChanged = try self.deadLetters.committed()
    for sink in self.sinks where try sink.committed() { hasChanged = true }
    // During a run the next checkpoint drops what has been completed; the last one has no next.
    if self.prepared.isLast, hasChanged { try self.commit() }
  }

  public var isDue: Bool { self.deadLetters.isDue || self.sinks.contains(where: \.isDue) }

  /// The pending bytes of the sink that has most.
  public var pendingByteCount: Int {
    self.sinks.reduce(self.deadLetters.pendingByteCount) { max($0, $1.pendingByteCount) }
  }
}
