/// The error codes that decisions are made by, under the names of the PostgreSQL manual, appendix A.
package enum SQLState {
  package static let connectionFailure = "08006"
  package static let protocolViolation = "08P01"

  package static let stringDataRightTruncation = "22001"
  package static let numericValueOutOfRange = "22003"
  package static let invalidDatetimeFormat = "22007"
  package static let datetimeFieldOverflow = "22008"
  package static let characterNotInRepertoire = "22021"
  package static let duplicateJSONObjectKeyValue = "22030"
  package static let invalidJSONText = "22032"
  package static let invalidTextRepresentation = "22P02"
  package static let invalidBinaryRepresentation = "22P03"
  package static let untranslatableCharacter = "22P05"

  package static let notNullViolation = "23502"
  package static let foreignKeyViolation = "23503"
  package static let uniqueViolation = "23505"

  package static let sequenceLimitExceeded = "2200H"
  package static let readOnlySQLTransaction = "25006"
  package static let idleInTransactionSessionTimeout = "25P03"
  package static let transactionTimeout = "25P04"

  package static let triggeredDataChangeViolation = "27000"

  package static let invalidPassword = "28P01"

  package static let invalidCatalogName = "3D000"

  package static let transactionIntegrityConstraintViolation = "40002"

  package static let insufficientPrivilege = "42501"
  package static let undefinedTable = "42P01"
  package static let duplicateColumn = "42701"
  package static let duplicateObject = "42710"
  package static let wrongObjectType = "42809"
  package static let duplicateSchema = "42P06"
  package static let duplicateTable = "42P07"

  package static let diskFull = "53100"
  package static let tooManyConnections = "53300"

  package static let programLimitExceeded = "54000"
  package static let statementTooComplex = "54001"
  package static let tooManyColumns = "54011"

  package static let objectNotInPrerequisiteState = "55000"
  package static let objectInUse = "55006"
  package static let lockNotAvailable = "55P03"

  package static let queryCanceled = "57014"
  package static let adminShutdown = "57P01"
  package static let crashShutdown = "57P02"
  package static let cannotConnectNow = "57P03"
  package static let idleSessionTimeout = "57P05"

  package static let snapshotTooOld = "72000"

  /// A table, a column or a right is missing, or the statement does not apply to this kind of
  /// table.
  package static func concernsTables(_ sqlState: String) -> Bool {
    sqlState.hasPrefix("42") || sqlState.hasPrefix("0A")
  }
}
