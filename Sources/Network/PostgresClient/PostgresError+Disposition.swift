extension PostgresError {
  /// What to do about a condition (PostgreSQL manual, appendix A).
  static func disposition(sqlState: String) -> Disposition {
    switch sqlState {
    case SQLState.transactionIntegrityConstraintViolation: return .rejectedRow
    // Read-only: a standby that was the primary before a fail-over.
    case SQLState.readOnlySQLTransaction, SQLState.idleInTransactionSessionTimeout,
      SQLState.transactionTimeout, SQLState.objectInUse, SQLState.lockNotAvailable,
      SQLState.snapshotTooOld:
      return .retry
    case SQLState.diskFull: return .diskFull
    case SQLState.tooManyConnections: return .retry
    // "Index row size exceeds maximum" and the like; a value nested too deeply.
    case SQLState.programLimitExceeded, SQLState.statementTooComplex: return .rejectedRow
    // A trigger changes the row that is being written.
    case SQLState.triggeredDataChangeViolation: return .configuration
    // Statement timeout or a cancel; shutdown, crash, starting up; idle session.
    case SQLState.queryCanceled, SQLState.adminShutdown, SQLState.crashShutdown,
      SQLState.cannotConnectNow, SQLState.idleSessionTimeout:
      return .retry
    case SQLState.insufficientPrivilege, SQLState.invalidCatalogName: return .refused
    default: break
    }
    switch sqlState.prefix(2) {
    case "08", "40": return .retry
    case "21", "22", "23", "38", "39", "44", "HV", "P0", "2F": return .rejectedRow
    case "53", "58", "XX": return .resources
    case "28", "0L", "0P": return .refused
    case "0A", "3F", "42", "54", "55", "57", "F0": return .configuration
    default: return Self.isStandardClass(sqlState) ? .bug : .rejectedRow
    }
  }

  /// False for conditions that only a RAISE in a function or trigger can have named.
  static func isStandardClass(_ sqlState: String) -> Bool {
    Self.standardClasses.contains(String(sqlState.prefix(2)))
  }

  private static let standardClasses: Set<String> = [
    "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "20", "21", "22", "23",
    "24", "25", "26", "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42",
    "44", "53", "54", "55", "57", "58", "72", "F0", "HV", "P0", "XX",
  ]
}
