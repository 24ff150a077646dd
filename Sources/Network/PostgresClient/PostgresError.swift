/// The database, the connection to it, or the tables in it are not as they have to be.
///
/// The message never holds row values: of what the server says only the primary message is kept, and
/// that only where it cannot quote a value (see `ServerReport`); its detail, hint and context are not.
@usableFromInline
package struct PostgresError: Error, Sendable, CustomStringConvertible {
  /// What the caller should do.
  package enum Disposition: String, Sendable {
    /// A row of the batch is refused and would be refused again: find it, set it aside and
    /// continue.
    case rejectedRow
    /// Deadlock, restart, lost connection, cancelled: the same again may succeed.
    case retry
    /// The server's disk is full. Exit code 74.
    case diskFull
    /// The server is out of another resource, or damaged. Exit code 74.
    case resources
    /// Login, permission or database refused. Exit code 77.
    case refused
    /// Tables, names or settings do not fit. Exit code 78.
    case configuration
    /// A table was dropped that cannot be rebuilt. Exit code 65.
    case lostTable
    /// The database has lost commits that it had confirmed. Exit code 75: the next run resumes from
    /// what it has.
    case rewound
    /// A schema needs what the contract does not allow to add. Exit code 65.
    case contract
    /// This program has used the server wrongly. Exit code 70.
    case bug
  }

  /// Five characters (PostgreSQL manual, appendix A); `08006` for a connection lost or silent; nil
  /// for what this program found out itself.
  package var sqlState: String?
  package var message: String
  package var disposition: Disposition
  /// The column whose value was refused, as far as the server tells it.
  package var column: String?
  /// The least time to leave the server alone before the next attempt.
  package var pause = Duration.zero
  /// The values of a row may be the cause, even where the disposition says otherwise: an expression
  /// over them failed, with a message that is not printed.
  package var mayConcernRow = false

  /// The message already has the statements to run.
  package var isExplained = false

  /// The server has been silent since then; nil when it has answered.
  package var silentSince: ContinuousClock.Instant?

  /// A row is refused, or may be: isolate it before anything else is blamed.
  package var refusesRow: Bool { self.disposition == .rejectedRow || self.mayConcernRow }

  /// A sequence has given out its last number.
  package var isExhaustedSequence: Bool {
    self.sqlState == SQLState.sequenceLimitExceeded && self.disposition == .configuration
  }

  package init(
    _ disposition: Disposition, _ message: String, sqlState: String? = nil, column: String? = nil
  ) {
    self.column = column
    self.disposition = disposition
    self.message = message
    self.sqlState = sqlState
  }

  @usableFromInline
  package var description: String { self.message }
}

extension PostgresError {
  /// The column that the context of an error in a COPY names. Of the context nothing else is taken:
  /// in text format it continues with the value.
  ///
  /// - Parameter context: `COPY opportunity, line 3, column amount`.
  static func copyColumn(context: String) -> String? {
    let line = context.prefix { $0 != "\n" && $0 != ":" }
    let parts = line.split(separator: ", column ", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let place = parts.first, let column = parts.last, !column.isEmpty,
      place.hasPrefix("COPY "), !place.contains("\""),
      place.split(separator: ", line ").last?.allSatisfy(\.isNumber) == true
    else { return nil }
    return String(column)
  }

  static func connectionLost(
    _ message: String, since: ContinuousClock.Instant? = nil
  ) -> PostgresError {
    var error = PostgresError(
      .retry, "postgres: \(message)", sqlState: SQLState.connectionFailure)
    error.silentSince = since
    return error
  }
}
