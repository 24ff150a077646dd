internal import Pipeline
internal import PostgresStore

/// Rows of the history are sent while their transaction still grows, so that the server works on
/// them while the next events are decoded.
extension PostgresSink {
  /// A COPY costs the server about as much as some rows: not for fewer bytes of values than these.
  private static let minByteCount = 512 * 1024

  /// Sends what has gathered, if it is worth it, and does not wait for the answer.
  ///
  /// Whatever goes wrong is left to the transaction, which then sends the rows again.
  func sendAhead(_ rows: PendingRows) {
    guard rows.unsentByteCount >= Self.minByteCount, self.maySendAhead, self.care == .none,
      rows.loader.hasHistory, rows.buffer.rows[rows.sentCount...].allSatisfy({ $0.epoch <= 1 })
    else { return }
    do {
      if self.isAhead {
        try self.connection.finishCopy()
      } else {
        // What is not idle now has been left by an error; to send ahead is not the place to mend it.
        guard self.connection.transactionStatus == .idle else { return }
        try self.connection.begin()
        self.isAhead = true
      }
      try rows.loader.sendHistory(
        rows.buffer, rows: rows.sentCount..<rows.buffer.rows.count, over: self.connection)
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
    _ = try? self.connection.finishCopy()
    try self.connection.execute("ROLLBACK")
  }
}
