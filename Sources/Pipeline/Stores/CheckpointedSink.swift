public import JSON

/// A sink whose state the checkpoint holds: rows count as soon as the checkpoint that knows them is
/// durable. Driven by one thread; calls block until done.
///
/// `CheckpointedStore` calls, per commit: `write` for each batch, `flush` once, then stores the
/// returned state together with the positions in the checkpoint, then `committed`. Between `flush`
/// and `committed` rows of the next commit may be written; they change nothing of what was returned.
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

  /// Makes everything written so far durable and returns the state the checkpoint has to hold.
  /// What is due (rotation by size, age, idleness; everything with `finish`) is closed as part of
  /// the commit.
  func flush(finish: Bool) throws -> JSONValue

  /// The checkpoint with the state of the last `flush` is durable: completes what it announced
  /// (final names, manifest). True when the state has changed and wants to be stored again.
  func committed() throws -> Bool

  /// True when something is due (rotation by age or idleness) though nothing was written.
  var isDue: Bool { get }

  /// Output bytes taken since the last `flush`, before compression.
  var pendingByteCount: Int { get }

  /// Whether records can be read into the sink.
  var takesReads: Bool { get }

  /// How far the records of an object have been read into the sink; nil when no pass was begun, or it
  /// has to begin anew.
  func pass(over entity: String) -> ReadPass?

  /// The user has requested that all records of the object are read, whatever was read before.
  func awaitsReads(of entity: String) -> Bool

  /// The number of the last pass over the object that was begun; 0 without one.
  func passNumber(over entity: String) -> Int

  /// Takes records that were read, all of one layout, and how far their pass has come with them.
  func write(_ reads: RecordBatch, pass: ReadPass) throws

  /// See `Store` for these three.
  var hasRefusingStages: Bool { get }
  func takeRefusedEvents() -> [RefusedEvent]
  func takeUnreadable() -> [UnreadableRecord]

  /// The memory of the sink's own stages about a topic; see `Transform.memory`.
  func memory(ofTopic topic: String) -> StageMemory

  /// - Parameter memory: of all sinks whose state the checkpoint holds.
  func recall(_ memory: StageMemory, ofTopic topic: String) throws
}

extension CheckpointedSink {
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
  public func memory(ofTopic topic: String) -> StageMemory { [:] }
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {}
}
