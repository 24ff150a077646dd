/// Makes rows and their position durable in one step. The checkpoint with its files is one store,
/// and each database is another.
///
/// Driven by one thread. Rows are written to the *open* commit, and `seal` closes it; while it
/// waits for a store that is unavailable, the next one fills. For each sealed commit, the runner
/// calls `prepare` of every store, `commit` of every store, then `complete` of every store. The
/// store that keeps dead letters prepares last and commits first, so that it has the events that
/// others refuse; after a crash it may be ahead of them. It can be behind only if it merely repeats
/// their positions (`CheckpointPace`). `TopicCursors` brings stores at different positions together
/// again.
///
/// No call waits for an unavailable resource: the store returns the time of the next attempt, and
/// the runner repeats the call. A store that gives up throws.
package protocol Store: AnyObject {
  /// Identity of the store, unique in the pipeline.
  var name: String { get }

  /// Takes the rows of a batch, in stream order. A `TableStore` must be ready for the layout. Not
  /// durable yet.
  func write(_ batch: RecordBatch) throws

  /// Closes the open commit; later rows belong to the next. Called only once the previous one is
  /// complete.
  ///
  /// - Parameter isLast: the run ends with this commit, so nothing is left open.
  func seal(isLast: Bool) throws

  /// Performs the sealed commit except for the step that makes it durable. Called again after
  /// `LeasedStore.retract`.
  func prepare(_ commit: Commit) throws -> StoreAnswer

  /// Makes the prepared commit durable.
  func commit() throws -> StoreAnswer

  /// Called after every store has committed. Finishes postponed work.
  func complete() throws

  /// Whether something is due (a rotation, a lease) although nothing was written.
  var isDue: Bool { get }

  /// Bytes of output in the open commit, before compression; drives `commit.max_bytes`.
  var pendingByteCount: Int { get }
}

/// A store whose tables have to fit before rows come.
package protocol TableStore: Store {
  /// Whether rows of the layout can be written without preparation.
  func isReady(for layout: RecordLayout) -> Bool

  /// Prepares for rows of the layout. Called only while no commit is sealed.
  func makeReady(for layout: RecordLayout) throws -> StoreAnswer

  /// Notes that a layout belongs to the schema that its object has now. Events of earlier schemas may
  /// still come.
  func noteCurrent(_ layout: RecordLayout)

  /// Notes that an event of the layout was committed since the run began. If its object was noted to
  /// have another schema, nothing is known of the present one any more.
  func noteRecent(_ layout: RecordLayout)
}

/// A store that others use at the same time: it has a lease, and a prepared commit holds locks.
package protocol LeasedStore: Store {
  /// Does due work that needs no commit, while a commit waits for a store.
  func renewLease() throws

  /// Releases the resources of `prepare` while another store is unavailable. The sealed commit
  /// stays.
  func retract()
}

/// A store that lets other work be done while `prepare` and `commit` wait for a server.
package protocol OverlappingStore: Store {
  /// Takes more of the stream, which may write rows to the open commit. Returns false when there is
  /// nothing to be done at present. Calls no other method of the store.
  var whileWaiting: (() -> Bool)? { get set }
}

/// The result of a request to a store.
package enum StoreAnswer {
  /// Prepared, or durable.
  case done
  /// Prepared without these events; they become dead letters of the commit.
  case refused([RefusedEvent])
  /// Nothing was done.
  case unavailable(StoreOutage)
}

/// Why a store is unavailable.
package struct StoreOutage {
  /// The run's error if it has no time to wait.
  package var reason: any Error
  package var retryAt: ContinuousClock.Instant

  package init(_ reason: any Error, retryAt: ContinuousClock.Instant) {
    self.reason = reason
    self.retryAt = retryAt
  }
}

/// The data, other than rows, that a store makes durable.
package struct Commit: Sendable, Equatable {
  /// The store's position in each topic that has one.
  package var positions: [String: TopicPosition]
  /// Events of the commit without rows, to be kept or noted as missing. The store that keeps dead
  /// letters also gets those that others refuse.
  package var letters: [DeadLetter]
  /// The run ends with this commit, so nothing is left open.
  package var isLast: Bool

  package init(
    positions: [String: TopicPosition], letters: [DeadLetter] = [], isLast: Bool = false
  ) {
    self.positions = positions
    self.letters = letters
    self.isLast = isLast
  }
}

/// An event that a store refuses.
package struct RefusedEvent: Sendable, Equatable {
  package var topic: String
  package var epoch: Int
  package var ordinal: Int64
  /// Why, without values.
  package var reason: String
  /// Nil for an event that reached no sink.
  package var refusal: DeadLetter.Refusal?

  package init(
    topic: String, epoch: Int, ordinal: Int64, reason: String, refusal: DeadLetter.Refusal?
  ) {
    self.topic = topic
    self.epoch = epoch
    self.ordinal = ordinal
    self.reason = reason
    self.refusal = refusal
  }
}
