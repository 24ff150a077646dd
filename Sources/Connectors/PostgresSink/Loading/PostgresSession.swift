package import Clocks
internal import Glibc
internal import Pipeline
internal import PostgresClient

/// A sink's connection, with its retries, its lease and the state of its transaction.
///
/// Requests are retried after a lost connection, a lock or a conflict with another transaction.
/// Before a run they wait for the database. During a run they never wait: the runner asks again,
/// and does other work meanwhile.
package final class PostgresSession {
  /// Receives errors that are retried; `sqlState` is nil for errors without one.
  package typealias RetryReceiver = (
    _ message: String, _ sqlState: String?, _ delay: Duration
  ) -> Void

  /// What a request does while the database is unavailable.
  private enum Mode {
    /// It waits for the database.
    case waits
    /// It makes one attempt, and its error shows when the next may be made.
    case answers
  }

  package var onRetry: RetryReceiver?
  /// Called when an attempt succeeds after such errors.
  package var onRecovery: (() -> Void)?
  /// Has the transaction of the sealed commit or, if none is sealed, of the open one.
  var connection: PostgresConnection
  var checkpoint: PostgresCheckpoint
  let configuration: PostgresSinkConfiguration
  private let catalog: TableCatalog
  private var mode = Mode.waits
  private var retries: Retries
  private var renewedAt: ContinuousClock.Instant
  /// The last commit was made over another connection, perhaps to another server.
  var isReconnected = false
  /// Rows that have been sent before their transaction was complete.
  var ahead: [PendingRows] = []
  /// False from the first failed call until the end of its transaction.
  var maySendAhead = true
  /// A commit is sealed and not known to be durable.
  var isSealed = false
  /// A second connection, for rows of the open commit while one is sealed.
  var spare: PostgresConnection?
  /// The rows that its transaction has.
  var spareRows: PendingRows?
  /// When that transaction began, or the last one ended in vain.
  var sparedAt: ContinuousClock.Instant?
  /// False where one connection has to suffice.
  var maySpare = true
  /// The histories, by qualified name, that two transactions write without waiting for each other.
  var independent: Set<String> = []
  /// The sealed commit is being sent, and for the first time.
  var isOverlapping = false

  /// Connects.
  init(
    _ configuration: PostgresSinkConfiguration, _ catalog: TableCatalog,
    _ checkpoint: PostgresCheckpoint
  ) throws(PostgresError) {
    self.configuration = configuration
    self.catalog = catalog
    self.checkpoint = checkpoint
    self.retries = Retries(configuration.retry, quickDelays: Self.quickDelays)
    self.renewedAt = configuration.connection.clock.now
    self.connection = try PostgresConnection(configuration.runConnection)
  }

  /// Called while the session waits for the database; returns true to give up the connection.
  package var givesUp: (() -> Bool)? {
    get { self.connection.givesUp }
    set {
      self.connection.givesUp = newValue
      self.spare?.givesUp = newValue
    }
  }

  var now: ContinuousClock.Instant { self.configuration.connection.clock.now }

  /// Whether the last request has failed.
  var isAway: Bool { self.retries.failures > 0 }

  // MARK: Requests

  /// Delays after a deadlock or the end of a server process, which can be retried at once.
  private static let quickDelays: [Duration] = [
    .milliseconds(50), .milliseconds(200), .milliseconds(500),
  ]

  /// Makes one attempt at the runner's request.
  ///
  /// - Parameter rows: rows for the tables that it writes to. If another session has locked one of
  ///   these, the error names that session.
  func answering(
    for rows: [PendingRows], _ body: () throws -> StoreAnswer
  ) throws -> StoreAnswer {
    do {
      let answer = try self.configuration.explaining { try self.once(body) }
      self.succeeded()
      return answer
    } catch let error as PostgresError where error.disposition == .retry {
      let error = self.namingLockHolder(error, of: rows)
      let delay = try self.delay(after: error)
      return .unavailable(StoreOutage(error, retryAt: self.now + delay))
    }
  }

  /// Makes an attempt at work that can be postponed.
  ///
  /// - Returns: nil when the database does not answer. It then counts as away until a request of the
  ///   runner succeeds.
  func unlessAway<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value? {
    do {
      return try self.once { try self.retrying(body) }
    } catch let error as PostgresError where error.disposition == .retry {
      _ = try self.delay(after: error)
      return nil
    }
  }

  /// Makes one attempt, including what `body` requests.
  func once<Value>(_ body: () throws -> Value) rethrows -> Value {
    let outer = self.mode
    self.mode = .answers
    defer { self.mode = outer }
    return try body()
  }

  /// Repeats `body`, on a new connection if necessary, while that can help and the session may
  /// wait. `body` begins its own transaction, except for rows sent ahead if the first attempt
  /// `continuesAhead`. Errors of `sqlStates` are for the caller, who expects them. All others about
  /// a missing privilege get the statements to run.
  func retrying<Value>(
    butFor sqlStates: Set<String> = [], continuesAhead: Bool = false,
    _ body: (PostgresConnection) throws -> Value
  ) throws -> Value {
    var mayCorrect = true
    while true {
      do {
        try self.beginAttempt(isContinuing: continuesAhead && self.isAhead)
        let value = try body(self.connection)
        if self.mode == .waits { self.succeeded() }
        return value
      } catch let error as PostgresError {
        // The rows sent ahead are lost with the failed transaction. The second one must not hold locks
        // meanwhile.
        self.isOverlapping = false
        self.forgetAhead()
        if error.sqlState == SQLState.readOnlySQLTransaction { try self.leaveReadOnlySession() }
        if mayCorrect, try self.correctSequences(after: error) {
          mayCorrect = false
          continue
        }
        if let sqlState = error.sqlState, sqlStates.contains(sqlState) { throw error }
        guard self.mode == .waits, error.disposition == .retry else {
          throw self.configuration.explained(error)
        }
        Self.wait(
          try self.delay(after: error), by: self.configuration.connection.clock,
          givesUp: self.givesUp)
      }
    }
  }

  private func succeeded() {
    if self.isAway { self.onRecovery?() }
    self.retries.succeeded()
  }

  /// - Throws: the error once the retry time is used up.
  private func delay(after error: PostgresError) throws(PostgresError) -> Duration {
    // A copy, because `onRetry` may look at the sink.
    var retries = self.retries
    defer { self.retries = retries }
    return try retries.delay(after: error, at: self.now, givesUp: self.givesUp, self.onRetry)
  }

  /// Adds the session whose lock keeps rows from being written.
  private func namingLockHolder(
    _ error: PostgresError, of rows: [PendingRows]
  ) -> PostgresError {
    guard error.sqlState == SQLState.lockNotAvailable, error.pause == .zero,
      self.connection.isConnected
    else { return error }
    var error = error
    let tables = rows.flatMap { $0.tables.names }
    do {
      // The next attempt begins with the rollback anyway.
      if self.connection.transactionStatus != .idle { try self.rollBack() }
      error.message += try LockHolder.suffix(
        tables, self.configuration.schema, isExclusive: true, over: self.connection)
    } catch {
      // The error that is reported remains the first.
    }
    return error
  }

  /// A session keeps the default that it began with, and another host of the URL may accept writes
  /// now.
  ///
  /// - Throws: `PostgresError` (configuration) when somebody has set the role or database to read-only.
  private func leaveReadOnlySession() throws(PostgresError) {
    defer { self.connection.abandon() }
    guard self.connection.isConnected else { return }
    if self.connection.transactionStatus != .idle { try self.connection.execute("ROLLBACK") }
    if let setting = try ReadOnlySetting(over: self.connection) { throw setting.error }
  }

  /// The server may be another one than at the start, with sequences behind their tables.
  ///
  /// - Returns: whether any was, so that the same again may succeed.
  @inline(never)
  private func correctSequences(after error: PostgresError) throws -> Bool {
    guard error.sqlState == SQLState.uniqueViolation, self.connection.isConnected else {
      return false
    }
    if self.connection.transactionStatus != .idle { try self.rollBack() }
    return try self.correctSequences()
  }

  /// Sets sequences that are behind their tables.
  ///
  /// - Returns: whether any was.
  @discardableResult
  func correctSequences() throws -> Bool {
    let changes = try self.catalog.correctSequences(over: self.connection)
    for change in changes { self.catalog.onRepair?(change) }
    return !changes.isEmpty
  }

  /// Ends the connection's transaction, except that of rows sent ahead if it is continued. Like
  /// `wait`, not inlined into every caller of `retrying`.
  @inline(never)
  private func beginAttempt(isContinuing: Bool) throws {
    if !self.connection.isConnected {
      self.forgetAhead()
      // It may be to another server, or the last one that the role may have.
      self.leaveSpare(isLost: true)
      try self.connection.reset()
      self.isReconnected = true
    } else if !isContinuing {
      if self.connection.transactionStatus != .idle { try self.rollBack() }
      // A failed COMMIT leaves neither a transaction nor any sent rows.
      self.forgetAhead()
    }
  }

  /// Blocks for the given time or until `givesUp` returns true.
  @inline(never)
  private static func wait(_ delay: Duration, by clock: ProcessClock, givesUp: (() -> Bool)?) {
    let end = clock.now + delay
    while case let left = end - clock.now, left > .zero, givesUp?() != true {
      let (seconds, attoseconds) = min(left, .milliseconds(200)).components
      var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
      _ = clock.waitingForOthers { nanosleep(&time, nil) }
    }
  }

  /// Connects to a database that may not be available yet. Blocks.
  ///
  /// - Parameters:
  ///   - onRetry: receives each attempt that failed.
  ///   - givesUp: returns true to end the attempts.
  /// - Throws: the connection error, if waiting does not help or has taken too long.
  package static func connecting<Sink>(
    _ schedule: RetrySchedule, clock: ProcessClock, givesUp: @escaping () -> Bool,
    onRetry: @escaping RetryReceiver, _ connect: () throws -> Sink
  ) throws -> Sink {
    var retries = Retries(schedule, quickDelays: Self.quickDelays)
    while true {
      do {
        return try connect()
      } catch let error as PostgresError where error.disposition == .retry {
        let delay = try retries.delay(after: error, at: clock.now, givesUp: givesUp, onRetry)
        Self.wait(delay, by: clock, givesUp: givesUp)
      }
    }
  }

  // MARK: The lease

  var isDue: Bool { self.now - self.renewedAt > .seconds(20) }

  /// A failure shows at the next commit.
  func renewLease() {
    try? self.checkpoint.renew(over: self.connection)
    self.renewedAt = self.now
  }

  /// Call this when the transaction with these positions is known to be committed.
  func committed(topics: String) {
    self.checkpoint.committed(topics: topics)
    self.renewedAt = self.now
    self.isReconnected = false
    self.maySendAhead = true
    self.isSealed = false
    self.ahead.removeAll()
    self.takeSpare()
  }
}

extension Retries {
  /// - Throws: the error once the retry time is used up.
  fileprivate mutating func delay(
    after error: PostgresError, at now: ContinuousClock.Instant, givesUp: (() -> Bool)?,
    _ onRetry: PostgresSession.RetryReceiver?
  ) throws(PostgresError) -> Duration {
    if givesUp?() == true { throw error }
    let delay = self.failed(
      at: now, silence: error.silentSince, minimum: error.pause, random: .random(in: 0..<1))
    guard let delay else {
      var error = error
      error.message += self.verdict(at: now)
      throw error
    }
    onRetry?(error.message, error.sqlState, delay)
    return delay
  }
}
