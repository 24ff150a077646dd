/// An error of a statement as the server reports it, and how much of it may be printed.
///
/// Any SQLSTATE may come from an expression over the values of a row (a generated column, an index, a
/// CHECK, a policy, a trigger): `'…'::regclass` gives 42P01 and quotes its value, `'…'::tsquery`
/// gives 42601. So a primary message is printed only where it cannot quote a value.
struct ServerReport {
  var sqlState: String
  var primary: String
  /// Names of table, column and constraint, as far as the error has them.
  var place: [(kind: String, name: String)] = []
  /// The server's source file that reports the error.
  var sourceFile: String?
  /// `PL/pgSQL function refuse() line 3 at RAISE`
  var context: String?
  /// The error is about the statement's own text, in which no values are.
  var isAboutStatement = false
  /// The error is about the text of a function that the statement calls.
  var isAboutFunction = false

  /// A function or trigger may have worded the message: `RAISE` takes any SQLSTATE, and any text. Of the
  /// context only the language is not translated.
  var isRaised: Bool {
    self.isFromProcedure
      || self.context?.split(separator: "\n").contains { $0.hasPrefix("PL/") } ?? false
  }

  /// A procedural language reports the error itself, with names of its own choice. Their files:
  /// `pl_exec.c`, `plpy_elog.c`, `plperl.c`, `pltcl.c`, `plv8.cc`.
  private var isFromProcedure: Bool {
    let file = self.sourceFile?.split(separator: "/").last ?? ""
    return ["pl_", "plpy_", "plperl", "pltcl", "plv8"].contains { file.hasPrefix($0) }
  }

  /// Names of table, column and constraint that are the server's.
  var names: [(kind: String, name: String)] { self.isFromProcedure ? [] : self.place }

  /// The values of a row may have caused the error.
  var mayConcernRow: Bool {
    if self.isAboutStatement || self.isExhaustedSequence { return false }
    // A function that names something missing fails for every row, unless it made up the text itself.
    let caller = self.context?.split(separator: "\n").first { $0.hasPrefix("PL/") }
    if self.isAboutFunction, caller?.hasSuffix(" EXECUTE") != true { return false }
    if self.isRaised { return !Self.isTransient(self.sqlState) && !self.isOfServer }
    return ["0A", "3D", "3F", "42"].contains(self.sqlState.prefix(2))
      && !Self.definitionErrors.contains(self.sqlState)
  }

  /// - Parameter sql: the statement, or several.
  func isPrintable(during sql: String) -> Bool {
    if self.isExhaustedSequence { return true }
    if self.isRaised || self.isVague { return false }
    if self.isAboutStatement || !PostgresError.mayEvaluateRows(sql) { return true }
    if self.quotesOnlyNames(of: sql) { return true }
    switch self.sqlState.prefix(2) {
    case "08", "23", "25", "2B", "40", "53", "57", "72": return true
    default: return Self.definitionErrors.contains(self.sqlState)
    }
  }

  /// What is missing is something that the statement itself names.
  private func quotesOnlyNames(of sql: String) -> Bool {
    guard [SQLState.undefinedTable, "3F000", "42703", "42704"].contains(self.sqlState) else {
      return false
    }
    let parts = self.primary.split(separator: "\"", omittingEmptySubsequences: false)
    let names = parts.indices.filter { $0 % 2 == 1 }.flatMap { parts[$0].split(separator: ".") }
    return parts.count % 2 == 1 && !names.isEmpty
      && names.allSatisfy { sql.contains("\"\($0)\"") }
  }

  /// The class belongs to values and functions, or only a RAISE can have named it.
  private var isVague: Bool {
    switch self.sqlState.prefix(2) {
    case "22", "P0", "HV", "38", "39", "2F", "44": true
    default: !PostgresError.isStandardClass(self.sqlState)
    }
  }

  /// The server lacks a resource, cannot read or write a file, or has damaged data, and says so itself
  /// below a function: no row is at fault.
  private var isOfServer: Bool {
    guard !self.isFromProcedure else { return false }
    return ["53", "58"].contains(self.sqlState.prefix(2))
      || ["XX001", "XX002"].contains(self.sqlState)
  }

  private static func isTransient(_ sqlState: String) -> Bool {
    PostgresError.disposition(sqlState: sqlState) == .retry
  }

  /// Errors about tables, columns, privileges, limits and files, whose messages name those.
  private static let definitionErrors: Set<String> = [
    // Privilege; types of a query and its table; kind of table; values for generated columns.
    SQLState.insufficientPrivilege, "42804", SQLState.wrongObjectType, "428C9",
    // ON CONFLICT without an index; definitions, of policies too; what exists already.
    "42P10", "42P16", "42P17", "42611", SQLState.duplicateColumn, SQLState.duplicateObject,
    SQLState.duplicateSchema, SQLState.duplicateTable,
    SQLState.programLimitExceeded, SQLState.statementTooComplex, SQLState.tooManyColumns,
    SQLState.objectInUse, SQLState.lockNotAvailable, "58030", "XX001", "XX002",
  ]

  /// What is said instead of the message.
  var summary: String {
    switch self.sqlState {
    case SQLState.diskFull where self.isOfServer: "the disk of the database server is full"
    case _ where self.isOfServer: "the database server lacks a resource, or cannot use a file"
    case _ where self.isRaised: Self.raisedSummary
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
      switch self.sqlState.prefix(2) {
      case "22": "a value is not valid for its column"
      case "44": "a view's check option refuses a row"
      case "HV": "the foreign data wrapper refuses a row"
      case _ where self.isVague: Self.raisedSummary
      default:
        "an expression fails that a generated column, an index, a CHECK, a policy or a trigger "
          + "evaluates (the message may hold values: see server log)"
      }
    }
  }

  private static let raisedSummary =
    "a trigger or function refuses a row (its message may hold values: see server log)"

  /// What to do about limits that somebody meets without having set them.
  var remedy: String? {
    switch (self.sqlState, self.sourceFile) {
    case (SQLState.tooManyColumns, _), (SQLState.programLimitExceeded, "hio.c"):
      "; leave out fields that nobody needs, with the stage select or drop"
    case (SQLState.programLimitExceeded, _) where self.isWraparound:
      "; run VACUUM in that database, as the server log says"
    default: nil
    }
  }

  /// The server assigns no more transaction IDs, so it accepts no writes until somebody runs VACUUM.
  /// It says so with the SQLSTATE of a row that is too big.
  private var isWraparound: Bool {
    self.sqlState == SQLState.programLimitExceeded
      && ["varsup.c", "multixact.c"].contains(self.sourceFile)
  }

  /// A sequence has given out its last number, which is the same for every row. The message names
  /// the sequence, and no value.
  private var isExhaustedSequence: Bool {
    self.sqlState == SQLState.sequenceLimitExceeded && self.sourceFile == "sequence.c"
  }

  var disposition: PostgresError.Disposition {
    if self.isExhaustedSequence { return .configuration }
    return self.isWraparound ? .retry : PostgresError.disposition(sqlState: self.sqlState)
  }
}

extension PostgresError {
  /// An error that the server has reported.
  ///
  /// - Parameter sql: the statement, or several.
  init(_ report: ServerReport, during sql: String) {
    var text =
      report.isPrintable(during: sql)
      ? report.primary : report.summary
    for (kind, name) in report.names where !text.contains("\"\(name)\"") {
      text += ", \(kind) \"\(name)\""
    }
    self.init(
      report.disposition,
      "postgres: \(PostgresConnection.label(sql)): \(text) (SQLSTATE \(report.sqlState))"
        + (report.remedy ?? ""),
      sqlState: report.sqlState, column: report.names.first { $0.kind == "column" }?.name)
    self.mayConcernRow = report.mayConcernRow
  }

  /// False when each of the statements is known to evaluate no expression over rows.
  static func mayEvaluateRows(_ sql: String) -> Bool {
    !sql.split(separator: ";").allSatisfy { statement in
      let words = statement.split(whereSeparator: \.isWhitespace)
      return switch (words.first, words.dropFirst().first) {
      case ("SET", "CONSTRAINTS"), ("CREATE", "INDEX"), ("CREATE", "UNIQUE"),
        ("CREATE", "MATERIALIZED"):
        false
      case ("CREATE", "VIEW"), ("CREATE", "OR"): true
      case ("CREATE", _): !words.contains("AS")
      case (.some(let first), _): Self.definitions.contains(first)
      case (nil, _): true
      }
    }
  }

  private static let definitions: Set<Substring> = [
    "ALTER", "BEGIN", "COMMENT", "DROP", "GRANT", "LOCK", "RELEASE", "REVOKE", "ROLLBACK",
    "SAVEPOINT", "SET", "SHOW",
  ]
}
