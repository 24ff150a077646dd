/// The database, the connection to it, or the tables in it are not as they have to be.
///
/// The message never holds row values: of what the server says only the primary message is kept, and
/// that only where its text is the server's own (see `init(sqlState:primary:…)`); its detail, hint
/// and context are not.
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

  package init(
    _ disposition: Disposition, _ message: String, sqlState: String? = nil, column: String? = nil
  ) {
    self.column = column
    self.disposition = disposition
    self.message = message
    self.sqlState = sqlState
  }

  package var description: String { self.message }
}

extension PostgresError {
  /// An error that the server has reported.
  ///
  /// - Parameters:
  ///   - primary: its primary message; left out where it may quote a value: in class 22, and in whatever
  ///     functions and triggers raise.
  ///   - isRaised: a function or trigger has worded the message, whatever class it has given it.
  ///   - place: names of table, column and constraint, as far as the server tells them.
  init(
    sqlState: String, primary: String, isRaised: Bool = false,
    place: [(kind: String, name: String)], during: String
  ) {
    var text =
      isRaised ? Self.raisedSummary : Self.isOwnText(sqlState) ? primary : Self.summary(sqlState)
    for (kind, name) in place where !text.contains("\"\(name)\"") {
      text += ", \(kind) \"\(name)\""
    }
    self.init(
      Self.disposition(sqlState: sqlState), "postgres: \(during): \(text) (SQLSTATE \(sqlState))",
      sqlState: sqlState, column: place.first { $0.kind == "column" }?.name)
  }

  /// Whether a function may have worded a message: `RAISE` takes any SQLSTATE, and any text.
  ///
  /// - Parameters:
  ///   - sourceFile: where the server reports the error. The files of procedural languages: `pl_exec.c`,
  ///     `plpy_elog.c`, `plperl.c`, `pltcl.c`, `plv8.cc`.
  ///   - context: `PL/pgSQL function refuse() line 3 at RAISE`; only the language is not translated.
  static func isRaised(sourceFile: String?, context: String?) -> Bool {
    let file = sourceFile?.split(separator: "/").last ?? ""
    return ["pl_", "plpy_", "plperl", "pltcl", "plv8"].contains { file.hasPrefix($0) }
      || context?.split(separator: "\n").contains { $0.hasPrefix("PL/") } ?? false
  }

  /// The column that the context of an error in a COPY names. Of the context nothing else is taken:
  /// in text format it goes on with the value.
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

  static func connectionLost(_ message: String) -> PostgresError {
    PostgresError(.retry, "postgres: \(message)", sqlState: SQLState.connectionFailure)
  }

  /// True when the server's primary message names things, never values.
  private static func isOwnText(_ sqlState: String) -> Bool {
    switch sqlState.prefix(2) {
    case "22", "P0", "HV", "38", "39", "2F", "44": false
    default: Self.isStandardClass(sqlState)
    }
  }

  private static let raisedSummary =
    "a trigger or function refuses a row (its message may hold values: see server log)"

  private static func summary(_ sqlState: String) -> String {
    switch sqlState {
    case SQLState.stringDataRightTruncation: "a text is longer than its column allows"
    case SQLState.numericValueOutOfRange: "a number is out of the column's range"
    case SQLState.invalidDatetimeFormat, SQLState.datetimeFieldOverflow:
      "a date or time is out of range or malformed"
    case SQLState.characterNotInRepertoire, SQLState.untranslatableCharacter:
      "a text has a character that the database's encoding cannot represent"
    case SQLState.invalidTextRepresentation, SQLState.invalidBinaryRepresentation:
      "a value does not have the format of the column's type"
    case SQLState.duplicateJSONObjectKeyValue, SQLState.invalidJSONText:
      "a JSON text is not valid"
    default:
      switch sqlState.prefix(2) {
      case "22": "a value is not valid for its column"
      case "44": "a view's check option refuses a row"
      case "HV": "the foreign data wrapper refuses a row"
      default: Self.raisedSummary
      }
    }
  }
}
