/// Something that has a position and makes rows durable together with it, in one step: the
/// checkpoint with the files it knows is one, each database another.
///
/// Driven by one thread; calls block until done. Per commit the runner calls `write` for each batch,
/// `prepare` of every store, `commit` of every store, then `complete` of every store. The store that
/// keeps dead letters prepares last and commits first: so it has the events that others refuse, and
/// after a crash it may be ahead of them, never behind. `StreamPositions` brings stores that are apart
/// together again.
public protocol Store: AnyObject {
  /// Identity of the store, unique in the pipeline.
  var name: String { get }

  /// Whether dead letters are durable with the position of this store. One store of a run is.
  var keepsDeadLetters: Bool { get }

  /// Takes the rows of a batch in stream order. Not durable yet.
  func write(_ batch: RecordBatch) throws

  /// Takes an event that has no rows: to keep it, or to note that its rows are missing here. Not
  /// durable yet.
  func take(_ letter: DeadLetter) throws

  /// Does everything of a commit but the step that makes it durable.
  ///
  /// - Returns: the events whose rows the store refuses; they become dead letters of this commit.
  func prepare(_ commit: Commit) throws -> [RefusedEvent]

  /// Makes durable what was prepared.
  func commit() throws

  /// Every store has committed: finishes what could wait for that.
  func complete() throws

  /// True when something is due (a rotation, a lease) though nothing was written.
  var isDue: Bool { get }

  /// Bytes of output taken since the last commit, before compression; drives `commit.max_bytes`.
  var pendingByteCount: Int { get }
}

extension Store {
  public var keepsDeadLetters: Bool { false }
  public func complete() throws {}
}

/// What a store is to make durable besides the rows and letters that it has taken.
public struct Commit: Sendable, Equatable {
  /// The store's position in each topic that has one.
  public var positions: [String: TopicPosition]
  /// The run ends with it: nothing is left open.
  public var isLast: Bool

  public init(positions: [String: TopicPosition], isLast: Bool = false) {
    self.positions = positions
    self.isLast = isLast
  }
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
