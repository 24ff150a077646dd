internal import Pipeline
internal import PostgresClient

/// Rows of the history are sent while their transaction still grows, so that the server works on
/// them while the next events are decoded.
extension PostgresSink {
  /// Bytes of values that are worth a call of their own.
  private static let minByteCount = 64 * 1024
  /// The same when a COPY to another table is under way, which has to end first.
  private static let minByteCountForAnother = 512 * 1024

  /// Sends what has gathered, if it is worth it, and does not wait for the answer.
  ///
  /// Whatever goes wrong is left to the transaction, which then sends the rows again.
  func sendAhead(_ rows: PendingRows) {
    let isForAnother = self.isAhead && !rows.loader.isTakingHistory(over: self.connection)
    guard
      rows.unsentByteCount >= (isForAnother ? Self.minByteCountForAnother : Self.minByteCount),
      self.sealed == nil, self.maySendAhead, rows.loader.hasHistory,
      rows.open.rows[rows.sentCount...].allSatisfy({ $0.epoch <= 1 })
    else { return }
    do {
      if !self.isAhead {
        // An error has left the connection in a state that sending ahead does not repair.
        guard self.connection.transactionStatus == .idle else { return }
        try self.connection.beginLoad()
        self.isAhead = true
      }
      try rows.loader.sendHistory(
        rows.open, rows: rows.sentCount..<rows.open.rows.count, over: self.connection)
      rows.sent()
    } catch {
      self.maySendAhead = false
      try? self.rollBack()
    }
  }

  /// Rows that were sent ahead are in no transaction any more.
  func forgetAhead() {
    self.isAhead = false
    for rows in self.pending { rows.unsend() }
  }

  func rollBack() throws(PostgresError) {
    self.forgetAhead()
    // Its answer, good or bad, is of no more interest.
    try? self.connection.giveUpCopy()
    try self.connection.execute("ROLLBACK")
  }
}
