package import JSON
package import Pipeline
internal import PostgresClient

/// Sends the transaction: rows, dead letters and positions.
extension PostgresSink {
  package func prepare(_ commit: Commit) throws -> StoreAnswer {
    try self.prepare(commit.positions.mapValues(\.json), letters: commit.letters)
  }

  /// - Parameter topics: the position of each topic to store.
  package func prepare(
    _ topics: [String: JSONValue], letters: [DeadLetter] = []
  ) throws -> StoreAnswer {
    for rows in self.pending {
      guard let newest = rows.sealedNewestCommit else { continue }
      self.fedTables.note(commit: newest, topic: rows.topic, tables: rows.tables)
    }
    return try self.withSealed { commit in
      commit.holes = self.takesReads ? self.reads.missingRanges.holes(in: topics) : []
      commit.completeThrough = FedTables.completeThrough(
        topics, clock: self.configuration.connection.clock)
      let members = topics.sorted { $0.key < $1.key }.map { topic, position in
        JSONMember(topic, self.fedTables.adding(to: position, topic: topic))
      }
      commit.topics = PostgresCheckpoint.text(JSONValue(.object(members)))
      commit.undecodable = letters
      return try self.session.answering(for: self.pending) {
        try self.session.overlapping(self.whileWaiting) {
          try self.session.retrying(continuesAhead: true) { _ in try self.send(&commit) }
        }
        let refused = commit.tellRefused(by: self.name)
        return refused.isEmpty ? .done : .refused(refused)
      }
    }
  }

  package func retract() {
    if self.connection.isConnected, self.connection.transactionStatus != .idle {
      try? self.session.rollBack()
    }
    self.session.forgetAhead()
  }

  package func commit() throws -> StoreAnswer {
    var isSame = true
    let answer = try self.session.answering(for: self.pending) {
      let commit = try self.withSealed { commit in
        isSame = try self.makeDurable(&commit)
        return commit
      }
      if isSame { self.finish(commit) }
      return .done
    }
    guard isSame else {
      throw PostgresError(
        .retry, "postgres: the server refused rows that it had accepted before; run again")
    }
    return answer
  }

  /// Works on the sealed commit, and keeps its changes even after an error.
  private func withSealed<Value>(
    _ body: (inout SealedCommit) throws -> Value
  ) rethrows -> Value {
    guard var commit = self.sealed else { preconditionFailure("no commit is sealed") }
    defer { self.sealed = commit }
    return try body(&commit)
  }

  /// - Returns: false if the transaction has to be sent again and would refuse rows that were not
  ///   reported.
  private func makeDurable(_ commit: inout SealedCommit) throws -> Bool {
    do {
      if commit.isInDoubt { return try self.commitAgain(&commit) }
      try self.session.overlapping(self.whileWaiting) { try self.connection.execute("COMMIT") }
      return true
    } catch let error as PostgresError where error.disposition == .retry && !commit.isInDoubt {
      commit.isInDoubt = true
      return try self.commitAgain(&commit)
    }
  }

  /// Finds out whether a COMMIT whose answer was lost was executed, and executes it if not.
  private func commitAgain(_ commit: inout SealedCommit) throws -> Bool {
    try self.session.retrying { connection in
      // The server may still be committing; the lock on the row waits for that.
      try connection.begin()
      let isStored = try self.session.checkpoint.isStored(
        topics: commit.topics, over: connection)
      try connection.execute("ROLLBACK")
      if isStored { return true }
      try self.send(&commit)
      guard commit.hasToldRefused(by: self.name) else { return false }
      try connection.execute("COMMIT")
      return true
    }
  }

  /// Sends everything except the commit.
  private func send(_ commit: inout SealedCommit) throws {
    var hasRepaired = false
    while true {
      do {
        return try self.sendTransaction(of: &commit)
      } catch let error as PostgresError
        where error.refusesRow && commit.care != .immediateConstraints
      {
        try self.rollBackAndCheckTables(after: error.sqlState)
        commit.takeCare()
      } catch is TypesHaveChanged {
        try self.rollBackAndCheckTables()
        throw PostgresError(
          .retry,
          "postgres: columns were altered and changed back while rows were being "
            + "written to them; run again")
      } catch let error as PostgresError
        where error.sqlState == SQLState.protocolViolation && self.connection.isConnected
      {
        // The server's error for a COPY field that is shorter than its column's type.
        try self.rollBackAndCheckTables()
        throw error
      } catch let error as PostgresError
        where error.sqlState.map(SQLState.concernsTables) == true && self.connection.isConnected
        && !hasRepaired
      {
        guard try !self.rollBackAndCheckTables(after: error.sqlState) else { throw error }
        try self.repairTables()
        hasRepaired = true
      }
    }
  }

  /// Checks the tables first, so that a schema problem is not blamed on rows.
  ///
  /// - Returns: false if a table that can be rebuilt is missing.
  @discardableResult
  private func rollBackAndCheckTables(after sqlState: String? = nil) throws -> Bool {
    try self.session.rollBack()
    // The server may be another one than at the start, with sequences behind their tables.
    if sqlState == SQLState.uniqueViolation { try self.session.correctSequences() }
    var isComplete = true
    for rows in self.pending where rows.hasSealed {
      let isThere = try self.catalog.check(
        rows.tables, after: sqlState, over: self.connection)
      isComplete = isComplete && isThere
    }
    return isComplete
  }

  private func sendTransaction(of commit: inout SealedCommit) throws {
    commit.begin()
    if self.session.isAhead {
      try self.session.finishAhead(sendsRest: !commit.isRedriving)
    } else {
      try self.connection.beginLoad()
    }
    try self.session.checkpoint.store(
      topics: commit.topics, completeThrough: commit.completeThrough,
      verifies: self.session.isReconnected, over: self.connection)
    try self.beginPasses(of: commit)
    if commit.care == .immediateConstraints {
      try self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    }
    let isRedriving = commit.isRedriving
    for rows in self.pending where !rows.sealed.rows.isEmpty {
      let all = rows.sealed.rows.indices
      let foldsGaps = commit.foldsGaps(of: rows)
      if foldsGaps {
        try rows.loader.resync?.noteDeadLetters(
          commit.letters(among: rows), over: self.connection)
        commit.marked.insert(ObjectIdentifier(rows))
      }
      try self.load(rows, all, commit.care, refused: &commit.refusedRows) { range in
        try self.load(rows, range, isRedriving: isRedriving, foldsGaps: foldsGaps)
      }
    }
    try self.loadLateReferences(of: &commit)
    try self.closeRedriven(of: commit)
    try self.loadReads(of: &commit)
    try self.noteDeadLetters(of: commit)
    // Checks the constraints that COMMIT would check while rows can still be set aside.
    commit.isChecking = true
    let conditions = self.pending.filter(\.hasSealed).map(\.loader.typeCondition)
    let result = try self.connection.lastResult(
      of: "SET CONSTRAINTS ALL IMMEDIATE; SELECT "
        + (["true"] + conditions).joined(separator: " AND "))
    guard result[0, 0] == "t" else { throw TypesHaveChanged() }
  }

  /// The server may have read values as another type.
  private struct TypesHaveChanged: Error {}

  private func load(
    _ rows: PendingRows, _ range: Range<Int>, isRedriving: Bool, foldsGaps: Bool = false
  ) throws {
    if isRedriving, rows.tables.history == nil { return try self.markForRepair(rows, range) }
    // Loads the rows of one epoch at a time, because a later epoch may repeat known events.
    var start = range.lowerBound
    while start < range.upperBound {
      let epoch = rows.sealed.rows[start].epoch
      var end = start + 1
      while end < range.upperBound, rows.sealed.rows[end].epoch == epoch { end += 1 }
      try rows.loader.load(
        rows.sealed, rows: start..<end, sentCount: rows.sealedSentCount,
        foldsGaps: foldsGaps, over: self.connection, isRereading: epoch > 1 || isRedriving)
      start = end
    }
  }

  /// Loads rows with `body`. With care, splits refused rows in half until each refused row is
  /// isolated.
  func load(
    _ rows: PendingRows, _ range: Range<Int>, _ care: SealedCommit.Care,
    refused: inout [SealedCommit.RefusedRow], _ body: (Range<Int>) throws -> Void
  ) throws {
    if care == .none { return try body(range) }
    guard let error = try self.connection.refusal(of: { try body(range) }) else { return }
    if range.count == 1 {
      refused.append(.init(rows: rows, index: range.lowerBound, error: error))
      return
    }
    let middle = range.lowerBound + range.count / 2
    try self.load(rows, range.lowerBound..<middle, care, refused: &refused, body)
    try self.load(rows, middle..<range.upperBound, care, refused: &refused, body)
  }

  /// Retries rows that refer to later rows. Requires a history, from which current rows are rebuilt
  /// in the right order.
  private func loadLateReferences(of commit: inout SealedCommit) throws {
    let isRedriving = commit.isRedriving
    var count = 0
    repeat {
      count = commit.refusedRows.count
      commit.refusedRows = try commit.refusedRows.filter { row in
        guard row.error.sqlState == SQLState.foreignKeyViolation, row.rows.tables.history != nil
        else { return true }
        return try self.connection.refusal {
          try self.load(row.rows, row.index..<row.index + 1, isRedriving: isRedriving)
        } != nil
      }
    } while commit.refusedRows.count < count
  }

  private func noteDeadLetters(of commit: SealedCommit) throws {
    for (entity, records) in commit.unreadable {
      try RefusedReads(entity: entity, schema: self.configuration.schema).note(
        records, over: self.connection)
    }
    for rows in self.pending where !commit.marked.contains(ObjectIdentifier(rows)) {
      let entries = commit.letters(among: rows)
      guard !entries.isEmpty else { continue }
      try rows.loader.noteDeadLetters(entries, among: rows.sealed, over: self.connection)
    }
    for (entity, entry) in commit.content.leftOut {
      let table = ResyncTable(entity: entity, schema: self.configuration.schema)
      // One entry is enough, unless a pass that is under way will close it.
      if !self.reads.isInPass(entity), try table.hasOpenWildcard(over: self.connection) { continue }
      try table.noteDeadLetters([entry], over: self.connection)
    }
    for letter in commit.undecodable {
      let table = ResyncTable(
        entity: TopicName.entity(letter.topic), schema: self.configuration.schema)
      let entry = ResyncTable.Entry(
        .deadLetter, recordID: nil, eventID: letter.eventID, replayID: letter.replayID.hex)
      try table.noteDeadLetters([entry], over: self.connection)
    }
  }
}

extension PostgresConnection {
  /// Runs `body` under a savepoint of the open transaction.
  ///
  /// - Returns: why a row was refused, in which case `body` has no effect; nil if none was.
  func refusal(of body: () throws -> Void) throws -> PostgresError? {
    try self.execute("SAVEPOINT rows")
    do {
      try body()
      try self.execute("RELEASE SAVEPOINT rows")
      return nil
    } catch let error as PostgresError where error.refusesRow {
      try self.execute("ROLLBACK TO SAVEPOINT rows; RELEASE SAVEPOINT rows")
      return error
    }
  }
}
