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
public protocol Store: AnyObject {
  /// Identity of the store, unique in the pipeline.
  var name: String { get }

  /// Whether this store keeps the dead letters, durable with its position. Exactly one store of a
  /// run does.
  var keepsDeadLetters: Bool { get }

  /// Whether rows of the layout can be written without preparation.
  func isReady(for layout: RecordLayout) -> Bool

  /// Prepares for rows of the layout. Called only while no commit is sealed.
  func makeReady(for layout: RecordLayout) throws -> StoreAnswer

  /// Notes that a layout belongs to the schema that its object has now. Events of earlier schemas may
  /// still come.
  func noteCurrent(_ layout: RecordLayout)

  /// Takes the rows of a batch, in stream order. The store must be ready for the layout. Not
  /// durable yet.
  func write(_ batch: RecordBatch) throws

  /// Whether records can be read into the store, in rows of a layout that it is ready for.
  func takesReads(of layout: RecordLayout) -> Bool

  /// How far the records of an object have been read into the store; nil if no pass has begun, or
  /// if it has to start again.
  ///
  /// - Parameter key: `ReadPass.key`; that of a pass over all columns is the object's name.
  func pass(over key: String) -> ReadPass?

  /// The number of the last pass of the key; 0 if none has begun.
  func passNumber(over key: String) -> Int

  /// Dotted names of the fields whose values the store's columns for an object hold.
  func fields(of entity: String) throws -> [String]

  /// Takes what is known about reading an object's fields, by dotted name, and notes the states of
  /// its columns.
  ///
  /// - Returns: the columns that rows may lack values in, which can be read.
  func noteAccess(_ access: [String: FieldAccess], of entity: String) throws -> [FillingColumn]

  /// Notes that all records of an object will be read for the first time, which the store's
  /// completeness has to take into account.
  func awaitReads(of entity: String) throws

  /// Takes records that were read, all of one layout, and the progress of their pass including
  /// them; nil if they belong to none. They follow the events of the open commit and become durable
  /// with it.
  func write(_ reads: RecordBatch, pass: ReadPass?) throws

  /// Whether `recordsToRepair` may be called now.
  var isIdle: Bool { get }

  /// Records of an object that are wrong in the store and may be read again, ordered by ID, after
  /// `id`. Nil if the store is unavailable.
  func recordsToRepair(_ entity: String, after id: String, limit: Int) throws -> [String]?

  /// Whether all records of an object have to be read again, because events are missing or one said
  /// that any record may have changed. False while the store is unavailable; the runner asks again.
  func needsPass(over entity: String, topic: String) throws -> Bool

  /// Takes IDs of records that were requested and not found, and the last event before; durable
  /// with the open commit.
  func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64)

  /// Takes a record that was read and cannot become a row; durable with the open commit.
  func noteUnreadable(_ record: UnreadableRecord, of entity: String)

  /// The number of API calls made to repair records in the last day, by this run and earlier ones.
  func repairCallsOfDay() throws -> Int

  /// Takes a number of such calls; durable with the open commit.
  func noteRepairCalls(_ count: Int)

  /// Closes the open commit; later rows belong to the next. Called only once the previous one is
  /// complete.
  ///
  /// - Parameter isLast: the run ends with this commit, so nothing is left open.
  func seal(isLast: Bool) throws

  /// Performs the sealed commit except for the step that makes it durable. Called again after
  /// `retract`.
  func prepare(_ commit: Commit) throws -> StoreAnswer

  /// Makes the prepared commit durable.
  func commit() throws -> StoreAnswer

  /// Releases the resources of `prepare` while another store is unavailable. The sealed commit
  /// stays.
  func retract()

  /// Called after every store has committed. Finishes postponed work.
  func complete() throws

  /// Whether something is due (a rotation, a lease) although nothing was written.
  var isDue: Bool { get }

  /// Does due work that needs no commit, while a commit waits for a store.
  func renewLease() throws

  /// Bytes of output in the open commit, before compression; drives `commit.max_bytes`.
  var pendingByteCount: Int { get }

  /// Whether the store's own stages may refuse events.
  var hasRefusingStages: Bool { get }

  /// Events that the store's own stages have refused since the last call.
  func takeRefusedEvents() -> [RefusedEvent]

  /// Records that were read and that the store's own stages have refused since the last call.
  func takeUnreadable() -> [UnreadableRecord]

  /// The number of records of passes, by object, that the store itself has refused since the last
  /// call.
  func takeRefusedReads() -> [String: Int]

  /// The memory of the store's own stages about a topic; see `Transform.memory`.
  func memory(ofTopic topic: String) -> StageMemory

  /// - Parameter memory: as stored with the position of this store.
  func recall(_ memory: StageMemory, ofTopic topic: String) throws
}

extension Store {
  public var keepsDeadLetters: Bool { false }
  public func isReady(for layout: RecordLayout) -> Bool { true }
  public func makeReady(for layout: RecordLayout) throws -> StoreAnswer { .done }
  public func noteCurrent(_ layout: RecordLayout) {}
  public func takesReads(of layout: RecordLayout) -> Bool { false }
  public func pass(over key: String) -> ReadPass? { nil }
  public func passNumber(over key: String) -> Int { 0 }
  public func fields(of entity: String) throws -> [String] { [] }
  public func noteAccess(
    _ access: [String: FieldAccess], of entity: String
  ) throws -> [FillingColumn] { [] }
  public func awaitReads(of entity: String) throws {}
  public func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    preconditionFailure("\(self.name) takes no records that were read")
  }
  public var isIdle: Bool { true }
  public func needsPass(over entity: String, topic: String) throws -> Bool { false }
  public func recordsToRepair(_ entity: String, after id: String, limit: Int) throws -> [String]? {
    []
  }
  public func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64) {}
  public func noteUnreadable(_ record: UnreadableRecord, of entity: String) {}
  public func repairCallsOfDay() throws -> Int { 0 }
  public func noteRepairCalls(_ count: Int) {}
  public func retract() {}
  public func complete() throws {}
  public func renewLease() throws {}
  public var hasRefusingStages: Bool { false }
  public func takeRefusedEvents() -> [RefusedEvent] { [] }
  public func takeUnreadable() -> [UnreadableRecord] { [] }
  public func takeRefusedReads() -> [String: Int] { [:] }
  public func memory(ofTopic topic: String) -> StageMemory { [:] }
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {}
}

/// The result of a request to a store.
public enum StoreAnswer {
  /// Prepared, or durable.
  case done
  /// Prepared without these events; they become dead letters of the commit.
  case refused([RefusedEvent])
  /// Nothing was done.
  case unavailable(StoreOutage)
}

/// Why a store is unavailable.
public struct StoreOutage {
  /// The run's error if it has no time to wait.
  public var reason: any Error
  public var retryAt: ContinuousClock.Instant

  public init(_ reason: any Error, retryAt: ContinuousClock.Instant) {
    self.reason = reason
    self.retryAt = retryAt
  }
}

/// The data, other than rows, that a store makes durable.
public struct Commit: Sendable, Equatable {
  /// The store's position in each topic that has one.
  public var positions: [String: TopicPosition]
  /// Events of the commit without rows, to be kept or noted as missing. The store that keeps dead
  /// letters also gets those that others refuse.
  public var letters: [DeadLetter]
  /// The run ends with this commit, so nothing is left open.
  public var isLast: Bool

  public init(
    positions: [String: TopicPosition], letters: [DeadLetter] = [], isLast: Bool = false
  ) {
    self.positions = positions
    self.letters = letters
    self.isLast = isLast
  }
}

/// An event that a store refuses.
public struct RefusedEvent: Sendable, Equatable {
  public var topic: String
  public var epoch: Int
  public var ordinal: Int64
  /// Why, without values.
  public var reason: String
  /// Nil for an event that reached no sink.
  public var refusal: DeadLetter.Refusal?

  public init(
    topic: String, epoch: Int, ordinal: Int64, reason: String, refusal: DeadLetter.Refusal?
  ) {
    self.topic = topic
    self.epoch = epoch
    self.ordinal = ordinal
    self.reason = reason
    self.refusal = refusal
  }
}
