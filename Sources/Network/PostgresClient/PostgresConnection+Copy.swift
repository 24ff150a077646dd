internal import CPQ
internal import Clocks

/// A `COPY … FROM STDIN` whose answer has not been taken.
struct CopyUnderWay {
  var statement: String
  var trailer: [UInt8]
  var startedAt: ContinuousClock.Instant
  /// Rows that the table has to have in the end.
  var sentRowCount = 0
  var state = State.accepted
  var lacksHeader = false

  enum State {
    /// The statements before it are not answered.
    case announced
    /// It has been sent, and the server has not said that it takes data.
    case requested
    case accepted
  }
  /// Trailer and end have been sent.
  var isEnded = false
}

/// `COPY … FROM STDIN`. While one is under way the server works on what it has, and so may the
/// caller; the next call has to send more of it, `finishCopy` or `giveUpCopy`.
extension PostgresConnection {
  /// Begins a COPY; statements may stand before it, separated by semicolons.
  ///
  /// - Parameter trailer: what is sent after the last data.
  package func beginCopy(_ sql: String, trailer: [UInt8] = []) throws(PostgresError) {
    precondition(self.copyUnderWay == nil, "a COPY is under way")
    try self.start("COPY") { PQsendQuery(self.connection, sql) }
    try self.awaitCopyIn(sql)
    self.copyUnderWay = CopyUnderWay(
      statement: sql, trailer: trailer, startedAt: self.configuration.clock.now)
  }

  /// Begins a COPY and does not wait for the server: `hasRoomForCopy` shows when it takes data.
  ///
  /// - Parameter first: statements before it. They are sent alone, because a time limit that they set
  ///   would not count for the rest of the same message.
  package func requestCopy(
    after first: String, _ sql: String, trailer: [UInt8]
  ) throws(PostgresError) {
    precondition(self.copyUnderWay == nil, "a COPY is under way")
    try self.startWithoutWaiting(first)
    self.copyUnderWay = CopyUnderWay(
      statement: sql, trailer: trailer, startedAt: self.configuration.clock.now, state: .announced,
      lacksHeader: true)
  }

  private func startWithoutWaiting(_ sql: String) throws(PostgresError) {
    var failure: PostgresError?
    self.withoutWaiting {
      do throws(PostgresError) {
        try self.start("COPY") { PQsendQuery(self.connection, sql) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }

  /// Sends what the server has room for, and never waits.
  ///
  /// - Returns: whether the COPY under way takes more data at once.
  package func hasRoomForCopy() throws(PostgresError) -> Bool {
    guard let copy = self.copyUnderWay, !copy.isEnded else { return false }
    guard self.isConnected, try self.consumeInput() else {
      throw .connectionLost("the connection was closed during a COPY")
    }
    guard PQflush(self.connection) == 0 else { return false }
    if copy.state == .accepted { return true }
    while PQisBusy(self.connection) == 0 {
      guard let result = PQgetResult(self.connection).map({ PostgresResult($0, self.fault) }) else {
        guard self.copyUnderWay?.state == .announced else {
          throw PostgresError(
            .resources, "postgres: \(Self.label(copy.statement)): no COPY FROM STDIN")
        }
        try self.startWithoutWaiting(copy.statement)
        self.copyUnderWay?.state = .requested
        return false
      }
      switch result.status {
      case PGRES_COPY_IN:
        self.copyUnderWay?.state = .accepted
        return true
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK: continue
      default: throw self.error(of: result, copy.statement, hasRows: false)
      }
    }
    return false
  }

  /// True when the COPY under way takes more data of this statement. Not when it is old: the
  /// statement timeout counts from its beginning.
  package func isTakingCopy(_ sql: String) -> Bool {
    guard let copy = self.copyUnderWay, !copy.isEnded, copy.state == .accepted,
      copy.statement == sql
    else { return false }
    let timeout = self.configuration.statementTimeout
    return timeout == .zero || self.configuration.clock.now - copy.startedAt < timeout / 4
  }

  /// Data are best sent in chunks of some kilobytes.
  package func sendCopyData(_ bytes: UnsafeRawBufferPointer) throws(PostgresError) {
    guard let start = bytes.baseAddress else { return }
    try self.start("COPY") {
      PQputCopyData(
        self.connection, start.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
    }
  }

  /// Sends the end of the COPY under way, if there is one, and does not wait for its answer.
  package func endCopy() throws(PostgresError) {
    guard let copy = self.copyUnderWay, !copy.isEnded else { return }
    self.copyUnderWay?.isEnded = true
    var failure: PostgresError?
    copy.trailer.withUnsafeBytes { bytes in
      do throws(PostgresError) { try self.sendCopyData(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    try self.start("COPY") { PQputCopyEnd(self.connection, nil) }
  }

  /// Counts rows that have been sent with the COPY under way.
  func noteSentRows(_ count: Int) { self.copyUnderWay?.sentRowCount += count }

  /// Ends the COPY under way, if there is one, and takes its answer.
  ///
  /// - Returns: the number of rows copied.
  /// - Throws: `PostgresError` (configuration) when the server has left rows out, too.
  @discardableResult
  package func finishCopy() throws(PostgresError) -> Int {
    guard let copy = self.copyUnderWay else { return 0 }
    defer { self.copyUnderWay = nil }
    try self.endCopy()
    let count = try self.finish(copy.statement)?.affectedRowCount ?? 0
    guard count >= copy.sentRowCount else {
      throw PostgresError(
        .configuration,
        "postgres: \(Self.label(copy.statement)): \(count) of \(copy.sentRowCount) rows were stored; a trigger on "
          + "the table discards the others (BEFORE INSERT … RETURN NULL). Disable or change the "
          + "trigger")
    }
    return count
  }

  /// Ends the COPY under way, if there is one, as failed, and with it the transaction.
  package func giveUpCopy() throws(PostgresError) {
    guard let copy = self.copyUnderWay else { return }
    self.copyUnderWay = nil
    if !copy.isEnded {
      try self.start("COPY") { PQputCopyEnd(self.connection, "given up by the client") }
    }
    do throws(PostgresError) {
      _ = try self.finish(copy.statement)
    } catch {
      // An answer, which says only that.
      if !self.isConnected { throw error }
    }
  }

  private func awaitCopyIn(_ sql: String) throws(PostgresError) {
    let deadline = self.deadline()
    while let result = try self.nextResult(by: deadline) {
      switch result.status {
      case PGRES_COPY_IN: return
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK: continue
      default:
        // Without rows yet: the error is about the table, or the statements before.
        let error = self.error(of: result, sql, hasRows: false)
        while try self.nextResult(by: deadline) != nil {}
        throw error
      }
    }
    throw PostgresError(.resources, "postgres: \(Self.label(sql)): no COPY FROM STDIN")
  }
}
