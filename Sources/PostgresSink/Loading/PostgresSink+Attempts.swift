internal import Glibc
internal import Pipeline
internal import PostgresClient

/// Doing again what a lost connection, a lock or another transaction has prevented.
///
/// Before a run, whoever asks waits (`retrying`). During a run nothing is waited for: the runner asks
/// again (`attempt`), and has other things to do meanwhile.
extension PostgresSink {
  /// After so many failures in a row, the error is thrown.
  private static let delays: [Duration] = [
    .milliseconds(50), .milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2),
    .seconds(4), .seconds(8), .seconds(8), .seconds(8),
  ]

  /// Does what the runner asks for, once.
  func attempt(_ body: () throws -> StoreAnswer) throws -> StoreAnswer {
    self.isAttempt = true
    defer { self.isAttempt = false }
    do {
      let answer = try body()
      if self.failedAttempts > 0 { self.onRecovery?() }
      self.failedAttempts = 0
      return answer
    } catch let error as PostgresError
      where error.disposition == .retry && self.failedAttempts < Self.delays.count
      && self.givesUp?() != true
    {
      let delay = Self.delays[self.failedAttempts]
      self.failedAttempts += 1
      self.onRetry?(error.message, error.sqlState, delay)
      return .unavailable(StoreOutage(error, retryAt: .now + delay))
    }
  }

  /// Does it again, on a new connection if need be, as long as that may help; within an `attempt`
  /// once. `body` begins its own transaction, but for rows sent ahead if the first attempt
  /// `continuesAhead`. An error of `sqlState` is not waited out.
  func retrying<Value>(
    butFor sqlState: String? = nil, continuesAhead: Bool = false, _ body: () throws -> Value
  ) throws -> Value {
    var delays = Self.delays.makeIterator()
    var hasFailed = false
    while true {
      do {
        try self.beginAttempt(isContinuing: continuesAhead && !hasFailed && self.isAhead)
        let value = try body()
        if hasFailed { self.onRecovery?() }
        return value
      } catch let error as PostgresError {
        // Whatever was sent is rolled back with what has failed.
        self.forgetAhead()
        guard !self.isAttempt, error.disposition == .retry,
          sqlState == nil || error.sqlState != sqlState, let delay = delays.next()
        else {
          throw error
        }
        hasFailed = true
        self.wait(delay, after: error)
      }
    }
  }

  /// Leaves a connection without a transaction, but for that of rows sent ahead if it is continued.
  /// Not compiled into each caller of `retrying`, as `wait` is not.
  @inline(never)
  private func beginAttempt(isContinuing: Bool) throws {
    if !self.connection.isConnected {
      self.forgetAhead()
      try self.connection.reset()
    } else if !isContinuing {
      if self.connection.transactionStatus != .idle { try self.rollBack() }
      // A COMMIT that has failed leaves no transaction, and none of what was sent.
      self.forgetAhead()
    }
  }

  @inline(never)
  private func wait(_ delay: Duration, after error: PostgresError) {
    self.onRetry?(error.message, error.sqlState, delay)
    let (seconds, attoseconds) = delay.components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    nanosleep(&time, nil)
  }
}
