public import JSON

/// A sink that keeps its own position: rows and position are one transaction of its own.
///
/// The runner calls, per commit: `write` for each batch, `prepare`, then stores the checkpoint of
/// the other sinks and the dead letters, then `commit`. A crash in between leaves the checkpoint
/// ahead; `StreamPositions` brings both together again.
public protocol TransactionalSink: AnyObject {
  /// Identity of the sink, unique in the pipeline.
  var name: String { get }

  /// Takes the rows of a batch in stream order. Not durable yet.
  func write(_ batch: RecordBatch) throws

  /// An event of the topic went to the dead letters: its rows are missing here.
  func noteDeadLetter(_ letter: DeadLetter) throws

  /// Everything of the transaction but its commit.
  ///
  /// - Parameters:
  ///   - topics: positions to store, by topic.
  ///   - refused: told of each event whose rows the store refuses; it goes to the dead letters.
  func prepare(
    _ topics: [String: JSONValue], refused: (RefusedEvent) throws -> Void
  ) throws

  /// Commits what was prepared. Returns when it is durable.
  func commit() throws

  /// True when something is due (the lease) though nothing was written.
  var isDue: Bool { get }

  /// Bytes taken since the last commit.
  var pendingByteCount: Int { get }
}

/// An event that a store does not take.
public struct RefusedEvent: Sendable, Equatable {
  public var topic: String
  public var epoch: Int
  public var ordinal: Int64
  /// Why, without values.
  public var reason: String

  public init(topic: String, epoch: Int, ordinal: Int64, reason: String) {
    self.topic = topic
    self.epoch = epoch
    self.ordinal = ordinal
    self.reason = reason
  }
}
