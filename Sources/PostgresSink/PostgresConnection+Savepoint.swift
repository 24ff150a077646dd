internal import PostgresStore

extension PostgresConnection {
  /// Runs `body` under a savepoint of the open transaction.
  ///
  /// - Returns: why a row was refused, after which nothing of `body` stays; nil when none was.
  func refusal(of body: () throws -> Void) throws -> PostgresError? {
    try self.execute("SAVEPOINT rows")
    do {
      try body()
      try self.execute("RELEASE SAVEPOINT rows")
      return nil
    } catch let error as PostgresError where error.disposition == .rejectedRow {
      try self.execute("ROLLBACK TO SAVEPOINT rows; RELEASE SAVEPOINT rows")
      return error
    }
  }
}
