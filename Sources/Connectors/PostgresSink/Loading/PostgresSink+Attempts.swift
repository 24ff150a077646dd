package import Clocks
internal import Glibc
internal import Pipeline
internal import PostgresClient

/// Retries after a lost connection, a lock or a conflict with another transaction.
///
/// Before a run, the caller waits (`retrying`). During a run the sink never waits: the runner asks
/// again (`attempt`) and does other work meanwhile.
extension PostgresSink {
  /// Delays after a deadlock or the end of a server process, which can be retried at once.
  static let quickDelays: [Duration] = [
    .milliseconds(50), .milliseconds(200), .milliseconds(500),
  ]

  /// Makes one attempt at the runner's request.
  func attempt(_ body: () throws -> StoreAnswer) throws -> StoreAnswer {
    do {
      let answer = try self.configuration.explaining { try self.once(body) }
      if self.retries.failures > 0 { self.onRecovery?() }
      self.retries.succeeded()
      return answer
    } catch let error as PostgresError where error.disposition == .retry {
      let error = self.namingLockHolder(error)
      let delay = try self.delay(after: error)
      return .unavailable(StoreOutage(error, retryAt: self.now + delay))
    }
  }

  /// Adds the session whose lock keeps rows from being written.
  private func namingLockHolder(_ error: PostgresError) -> PostgresError {
    guard error.sqlState == SQLState.lockNotAvailable, error.pause == .zero,
      self.connection.isConnected
    else { return error }
    var error = error
    let tables = self.pending.flatMap { [$0.tables.history, $0.tables.current] }
    do {
      // The next attempt begins with the rollback anyway.
      if self.connection.transactionStatus != .idle { try self.rollBack() }
      error.message += try LockHolder.suffix(
        tables.compactMap(\.?.name), self.configuration.schema, isExclusive: true,
        over: self.connection)
    } catch {
      // The error that is reported remains the first.
    }
    return error
  }

  /// Makes an attempt at work that can be postponed.
  ///
  /// - Returns: nil when the database does not answer. The sink is then not idle until a commit
  ///   succeeds.
  func unlessAway<Value>(_ body: () throws -> Value) throws -> Value? {
    do {
      return try self.once(body)
    } catch let error as PostgresError where error.disposition == .retry {
      _ = try self.delay(after: error)
      return nil
    }
  }

  func once<Value>(_ body: () throws -> Value) rethrows -> Value {
    let isNested = self.isAttempt
    self.isAttempt = true
    defer { self.isAttempt = isNested }
    return try body()
  }

  /// - Throws: the error once the retry time is used up.
  private func delay(after error: PostgresError) throws(PostgresError) -> Duration {
    var retries = self.retries
    defer { self.retries = retries }
    return try self.delay(after: error, &retries)
  }

  private func delay(
    after error: PostgresError, _ retries: inout Retries
  ) throws(PostgresError) -> Duration {
    if self.givesUp?() == true { throw error }
    let now = self.now
    guard
      let delay = retries.failed(
        at: now, silence: error.silentSince, minimum: error.pause, random: .random(in: 0..<1))
    else {
      throw error.givenUp(retries, at: now)
    }
    self.onRetry?(error.message, error.sqlState, delay)
    return delay
  }

  /// Repeats `body`, on a new connection if necessary, while that can help; within an `attempt`
  /// only once. `body` begins its own transaction, except for rows sent ahead if the first attempt
  /// `continuesAhead`. Errors of `sqlStates` are for the caller, who expects them. All others about
  /// a missing privilege get the statements to run.
  func retrying<Value>(
    butFor sqlStates: Set<String> = [], continuesAhead: Bool = false, _ body: () throws -> Value
  ) throws -> Value {
    var retries = Retries(self.configuration.retry, quickDelays: Self.quickDelays)
    var mayCorrect = true
    while true {
      do {
        try self.beginAttempt(
          isContinuing: continuesAhead && retries.failures == 0 && self.isAhead)
        let value = try body()
        if retries.failures > 0 { self.onRecovery?() }
        return value
      } catch let error as PostgresError {
        // The rows sent ahead are lost with the failed transaction.
        self.forgetAhead()
        if error.sqlState == SQLState.readOnlySQLTransaction { try self.leaveReadOnlySession() }
        if mayCorrect, try self.correctSequences(after: error) {
          mayCorrect = false
          continue
        }
        if let sqlState = error.sqlState, sqlStates.contains(sqlState) { throw error }
        guard !self.isAttempt, error.disposition == .retry else {
          throw self.configuration.explained(error)
        }
        Self.wait(
          try self.delay(after: error, &retries), by: self.configuration.connection.clock,
          givesUp: self.givesUp)
      }
    }
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
    let changes = try self.catalog.correctSequences(over: self.connection)
    for change in changes { self.onRepair?(change) }
    return !changes.isEmpty
  }

  /// Ends the connection's transaction, except that of rows sent ahead if it is continued. Like
  /// `wait`, not inlined into every caller of `retrying`.
  @inline(never)
  private func beginAttempt(isContinuing: Bool) throws {
    if !self.connection.isConnected {
      self.forgetAhead()
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
  package static func connecting(
    _ schedule: RetrySchedule, clock: ProcessClock, givesUp: @escaping () -> Bool,
    onRetry: (_ message: String, _ sqlState: String?, _ delay: Duration) -> Void,
    _ connect: () throws -> PostgresSink
  ) throws -> PostgresSink {
    var retries = Retries(schedule, quickDelays: Self.quickDelays)
    while true {
      do {
        return try connect()
      } catch let error as PostgresError where error.disposition == .retry && !givesUp() {
        let now = clock.now
        guard
          let delay = retries.failed(
            at: now, silence: error.silentSince, random: .random(in: 0..<1))
        else {
          throw error.givenUp(retries, at: now)
        }
        onRetry(error.message, error.sqlState, delay)
        Self.wait(delay, by: clock, givesUp: givesUp)
      }
    }
  }
}

extension PostgresError {
  fileprivate func givenUp(
    _ retries: Retries, at time: ContinuousClock.Instant
  ) -> PostgresError {
    var error = self
    error.message += retries.verdict(at: time)
    return error
  }
}
