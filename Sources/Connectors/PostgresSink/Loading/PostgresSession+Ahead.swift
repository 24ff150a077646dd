internal import Pipeline
internal import PostgresClient

/// Sends history rows while their transaction still grows, so that the server processes them while
/// the next events are decoded.
extension PostgresSession {
  /// Bytes of values that justify a call.
  private static let minByteCount = 64 * 1024
  /// The threshold while a COPY to another table, which has to end first, is open.
  private static let minByteCountForAnother = 512 * 1024

  /// The open transaction has rows of the open commit.
  var isAhead: Bool { !self.ahead.isEmpty }

  /// Sends the waiting rows of the open commit if there are enough, and does not wait for the
  /// answer.
  ///
  /// On any error, the transaction sends the rows again.
  func sendAhead(_ rows: PendingRows) {
    guard let history = rows.loader.history, self.maySendAhead else { return }
    let isForAnother = self.isAhead && !history.isTaking(over: self.connection)
    guard
      rows.unsentByteCount >= (isForAnother ? Self.minByteCountForAnother : Self.minByteCount),
      rows.open.rows[rows.sentCount...].allSatisfy({ $0.epoch <= 1 })
    else { return }
    do {
      if !self.isAhead {
        // After an error, sending ahead cannot repair the connection.
        guard self.connection.transactionStatus == .idle else { return }
        try self.connection.beginLoad()
      }
      if !self.ahead.contains(where: { $0 === rows }) { self.ahead.append(rows) }
      try history.send(
        rows.open, rows: rows.sentCount..<rows.open.rows.count, over: self.connection)
      rows.sent()
    } catch {
      self.maySendAhead = false
      try? self.rollBack()
    }
  }

  /// Call this when the transaction of the rows sent ahead has ended.
  func forgetAhead() {
    for rows in self.ahead { rows.unsend() }
    self.ahead.removeAll()
  }

  func rollBack() throws(PostgresError) {
    self.forgetAhead()
    // The answer no longer matters.
    try? self.connection.giveUpCopy()
    try self.connection.execute("ROLLBACK")
  }
}
