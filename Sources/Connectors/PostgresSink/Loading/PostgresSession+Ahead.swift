internal import Pipeline
internal import PostgresClient

/// Sends history rows while their transaction still grows, so that the server processes them while
/// the next events are decoded.
extension PostgresSession {
  /// Bytes of values that justify a call.
  private static let minByteCount = 64 * 1024
  /// The threshold while a COPY to another table, which has to end first, is open.
  private static let minByteCountForAnother = 512 * 1024
  /// Bytes of values that are given to libpq at once. What the server has no room for stays in its
  /// memory.
  private static let maxQueuedByteCount = 256 * 1024
  /// The same for the first rows of a COPY, which are sent to the last byte.
  private static let maxFirstByteCount = 1 << 20

  /// The connection's transaction has rows that were sent before their commit was complete.
  var isAhead: Bool { !self.ahead.isEmpty }

  /// Sends waiting rows of the open commit if there are enough and the server has room for them.
  ///
  /// On any error, the transaction sends the rows again.
  func sendAhead(_ rows: PendingRows) {
    if self.isSealed { return self.sendBeside(rows) }
    guard let history = rows.loader.history, self.maySendAhead else { return }
    let isTaking = history.isTaking(over: self.connection)
    let isForAnother = self.isAhead && !isTaking
    guard
      rows.unsentByteCount >= (isForAnother ? Self.minByteCountForAnother : Self.minByteCount)
    else { return }
    do {
      if isTaking, try !self.connection.hasRoomForCopy() { return }
      let unsent = rows.unsentRows(
        byteCount: isTaking ? Self.maxQueuedByteCount : Self.maxFirstByteCount)
      guard rows.canBeSentAhead(unsent) else { return }
      if !self.isAhead {
        // After an error, sending ahead cannot repair the connection.
        guard self.connection.transactionStatus == .idle else { return }
        try self.connection.beginLoad()
      }
      if !self.ahead.contains(where: { $0 === rows }) { self.ahead.append(rows) }
      if isTaking {
        try history.queue(rows.open, rows: unsent, over: self.connection)
      } else {
        try history.send(rows.open, rows: unsent, over: self.connection)
      }
      rows.sent(unsent.upperBound)
    } catch {
      self.maySendAhead = false
      try? self.rollBack()
    }
  }

  /// Takes the answer to the open COPY.
  ///
  /// - Parameter sendsRest: sends the rest of its table's sealed rows first.
  func finishAhead(sendsRest: Bool) throws {
    for rows in self.ahead where sendsRest {
      guard let history = rows.loader.history, history.isTaking(over: self.connection) else {
        continue
      }
      let rest = rows.sealedSentCount..<rows.sealed.rows.count
      guard rows.sealed.rows[rest].allSatisfy({ $0.epoch <= 1 }) else { continue }
      try history.send(rows.sealed, rows: rest, over: self.connection)
      rows.sentSealed(rest.upperBound)
    }
    try self.connection.finishCopy()
  }

  /// Call this when the transaction of the rows sent ahead has ended without a commit.
  func forgetAhead() {
    for rows in self.ahead {
      if self.isSealed { rows.unsendSealed() } else { rows.unsend() }
    }
    self.ahead.removeAll()
    self.leaveSpare()
  }

  func rollBack() throws(PostgresError) {
    self.isOverlapping = false
    self.forgetAhead()
    // The answer no longer matters.
    try? self.connection.giveUpCopy()
    try self.connection.execute("ROLLBACK")
  }

  // MARK: The second connection

  /// A large commit: the stream delivers more than small ones, and the next are worth a second
  /// connection.
  private static let minOverlapByteCount = 1 << 20
  /// How long the rows of the next commit may wait in their transaction. Its beginning counts as the
  /// time when they arrived, and readers of it allow for five seconds.
  private static let maxSpareAge: Duration = .seconds(5)
  /// The pause after a transaction of the second connection that was in vain.
  private static let sparePause: Duration = .seconds(60)

  /// Opens the second connection after a commit of that many bytes, if two transactions that write
  /// these rows cannot wait for each other. Without it, everything works over the first alone.
  func openSpare(for pending: [PendingRows], byteCount: Int) {
    guard byteCount >= Self.minOverlapByteCount, self.spare == nil, self.maySpare,
      self.sparedAt.map({ self.now - $0 >= Self.sparePause }) ?? true,
      // A trigger that somebody adds later might make one wait, and this ends it.
      self.configuration.connection.lockTimeout > .zero
    else { return }
    do {
      let histories = pending.compactMap { $0.loader.history }
      let independent = try histories.filter { try $0.isIndependent(over: self.connection) }
      self.independent = Set(independent.map(\.definition.qualifiedName))
      guard !self.independent.isEmpty else {
        self.maySpare = false
        return
      }
      var configuration = self.configuration.runConnection
      configuration.connectTimeout = min(configuration.connectTimeout, .seconds(5))
      self.spare = try PostgresConnection(configuration)
      self.spare?.givesUp = self.givesUp
    } catch {
      // The role or the server allows one connection. If the first is lost, too, its next use shows it.
      self.maySpare = false
    }
  }

  /// Sends rows of the open commit over the second connection, in a transaction of their own, while
  /// that of the sealed commit is on its way. Never waits, since the server may let this transaction
  /// wait for the other.
  ///
  /// The transaction has rows of one history, and it becomes that of the next commit once the one
  /// before is durable. Any error ends it, and the next commit sends the rows again.
  func sendBeside(_ rows: PendingRows) {
    guard let spare, let history = rows.loader.history, self.isOverlapping,
      self.spareRows.map({ $0 === rows }) ?? true,
      self.independent.contains(history.definition.qualifiedName),
      rows.unsentByteCount >= Self.minByteCount
    else { return }
    do {
      guard self.spareRows != nil else {
        guard spare.transactionStatus == .idle else { return self.leaveSpare(isLost: true) }
        try history.request(over: spare)
        (self.spareRows, self.sparedAt) = (rows, self.now)
        return
      }
      guard try spare.hasRoomForCopy(), history.isTaking(over: spare) else { return }
      let unsent = rows.unsentRows(byteCount: Self.maxQueuedByteCount)
      guard rows.canBeSentAhead(unsent) else { return }
      try history.queue(rows.open, rows: unsent, over: spare)
      rows.sent(unsent.upperBound)
    } catch {
      self.leaveSpare(isLost: true)
    }
  }

  /// Ends the transaction of the second connection, if it has one, by closing the connection: a
  /// rollback might wait for an answer.
  func leaveSpare(isLost: Bool = false) {
    guard self.spareRows != nil || isLost else { return }
    self.spareRows?.unsend()
    self.spareRows = nil
    self.spare = nil
    self.sparedAt = self.now
  }

  /// Continues with the transaction of the second connection, now that the one before is durable.
  func takeSpare() {
    guard let spare, let rows = self.spareRows else { return }
    guard let history = rows.loader.history, history.isTaking(over: spare),
      let sparedAt, self.now - sparedAt < Self.maxSpareAge
    else { return self.leaveSpare() }
    (self.connection, self.spare) = (spare, self.connection)
    self.ahead = [rows]
    self.spareRows = nil
    // Nothing is known about the server at its other end.
    self.isReconnected = true
  }

  /// Runs `body`. Whenever it waits for the server, lets `work` take rows of the next commit, and
  /// sends these.
  ///
  /// - Parameter work: returns false when there is nothing to be done at present.
  func overlapping<Value>(_ work: (() -> Bool)?, _ body: () throws -> Value) rethrows -> Value {
    guard let work else { return try body() }
    let connection = self.connection
    var pause = Duration.zero
    self.isOverlapping = true
    connection.whileWaiting = { [unowned self] in
      if self.isOverlapping, work() {
        pause = .zero
      } else {
        pause = min(max(pause * 2, .milliseconds(1)), .milliseconds(50))
      }
      guard let rows = self.spareRows else { return pause }
      self.sendBeside(rows)
      return min(pause, .milliseconds(1))
    }
    defer {
      connection.whileWaiting = nil
      self.isOverlapping = false
    }
    return try body()
  }
}

extension PendingRows {
  /// A later epoch may repeat known events, which a COPY cannot skip.
  fileprivate func canBeSentAhead(_ range: Range<Int>) -> Bool {
    !range.isEmpty && self.open.rows[range].allSatisfy { $0.epoch <= 1 }
  }
}
