public import JSON

/// A sink whose state the checkpoint holds: rows count as soon as the checkpoint that includes them
/// is durable. Driven by one thread; calls block until done.
///
/// `CheckpointedStore` calls, per commit: `write` for each batch, `flush` once, then stores the
/// returned state together with the positions in the checkpoint, then `committed`. Rows of the next
/// commit may be written between `flush` and `committed`; they do not affect the returned state.
public protocol CheckpointedSink: AnyObject {
  /// Identity of the sink in checkpoints, unique in the pipeline.
  var name: String { get }

  /// Reconciles the state of an earlier run with the last checkpoint: finishes what was committed
  /// and discards the rest. Afterwards `flush` returns the state to store.
  ///
  /// - Parameter state: what `flush` returned for the last durable checkpoint; nil on a first run.
  func recover(from state: JSONValue?) throws

  /// Takes the rows of a batch in stream order. Not durable yet.
  func write(_ batch: RecordBatch) throws

  /// Makes everything written so far durable and returns the state for the checkpoint. Segments
  /// that are due (by size, age or idleness; all of them with `finish`) are closed as part of the
  /// commit.
  func flush(finish: Bool) throws -> JSONValue

  /// The checkpoint with the state of the last `flush` is durable: completes what it announced
  /// (final names, manifest). Returns true if the state has changed and has to be stored again.
  func committed() throws -> Bool

  /// Describes, for readers of the output, how complete it is. Called after `committed`.
  ///
  /// - Parameters:
  ///   - positions: the positions in the durable checkpoint, by topic.
  ///   - letters: the dead letters that wait; read when it is called first.
  ///   - isLast: no other commit of this run follows.
  func describe(
    _ positions: [String: TopicPosition], lacking letters: () -> WaitingLetters, isLast: Bool
  ) throws

  /// Whether something is due (rotation by age or idleness) although nothing was written.
  var isDue: Bool { get }

  /// Output bytes taken since the last `flush`, before compression.
  var pendingByteCount: Int { get }

  /// Whether records can be read into the sink.
  var takesReads: Bool { get }

  /// How far the records of an object have been read into the sink; nil if no pass has begun, or if
  /// it has to start again.
  func pass(over entity: String) -> ReadPass?

  /// Whether the user has requested that all records of the object be read, whatever was read
  /// before.
  func awaitsReads(of entity: String) -> Bool

  /// The number of the last pass over the object; 0 if none has begun.
  func passNumber(over entity: String) -> Int

  /// Takes records that were read, all of one layout, and the progress of their pass including
  /// them.
  func write(_ reads: RecordBatch, pass: ReadPass) throws

  /// See `Store` for this and the next two members.
  var hasRefusingStages: Bool { get }
  func takeRefusedEvents() -> [RefusedEvent]
  func takeUnreadable() -> [UnreadableRecord]

  /// Counts a record of the object's pass that has no line, in the state of the sink.
  func noteUnreadable(of entity: String)

  /// The memory of the sink's own stages about a topic; see `Transform.memory`.
  func memory(ofTopic topic: String) -> StageMemory

  /// - Parameter memory: the memory of all sinks whose state the checkpoint holds.
  func recall(_ memory: StageMemory, ofTopic topic: String) throws
}

extension CheckpointedSink {
  public func describe(
    _ positions: [String: TopicPosition], lacking letters: () -> WaitingLetters, isLast: Bool
  ) throws {}
  public var takesReads: Bool { false }
  public func pass(over entity: String) -> ReadPass? { nil }
  public func awaitsReads(of entity: String) -> Bool { false }
  public func passNumber(over entity: String) -> Int { 0 }
  public func write(_ reads: RecordBatch, pass: ReadPass) throws {
    preconditionFailure("\(self.name) takes no records that were read")
  }
  public var hasRefusingStages: Bool { false }
  public func takeRefusedEvents() -> [RefusedEvent] { [] }
  public func takeUnreadable() -> [UnreadableRecord] { [] }
  public func noteUnreadable(of entity: String) {}
  public func memory(ofTopic topic: String) -> StageMemory { [:] }
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {}
}
