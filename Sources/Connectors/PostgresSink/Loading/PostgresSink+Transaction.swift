package import JSON
package import Pipeline
internal import PostgresClient

/// Sends the transaction: rows, dead letters and positions.
extension PostgresSink {
  /// How the rows of a transaction are sent, more carefully after each refusal.
  enum Care {
    /// All at once.
    case none
    /// In halves under savepoints, until each refused row is isolated.
    case savepoints
    /// Under savepoints with immediate checks of deferred constraints, because COMMIT refused and
    /// does not name the row.
    case immediateConstraints
  }

  /// Identifies an event of the transaction.
  struct EventPlace: Hashable {
    private var topic: String
    private var epoch: Int
    private var ordinal: Int64

    init(topic: String, epoch: Int, ordinal: Int64) {
      self.topic = topic
      self.epoch = epoch
      self.ordinal = ordinal
    }

    init(_ event: RefusedEvent) {
      self.init(topic: event.topic, epoch: event.epoch, ordinal: event.ordinal)
    }
  }

  struct RefusedRow {
    var rows: PendingRows
    var index: Int
    var error: PostgresError
  }

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
    self.noteHoles(topics)
    self.completeThrough = FedTables.completeThrough(
      topics, clock: self.configuration.connection.clock)
    let members = topics.sorted { $0.key < $1.key }.map { topic, position in
      JSONMember(topic, self.fedTables.adding(to: position, topic: topic))
    }
    self.topics = PostgresCheckpoint.text(JSONValue(.object(members)))
    self.undecodable = letters.map { letter in
      UnwritableEvents.Letter(
        rows: nil, entity: TopicName.entity(letter.topic),
        entry: ResyncTable.Entry(
          .deadLetter, recordID: nil, eventID: letter.eventID, replayID: letter.replayID.hex))
    }
    return try self.attempt {
      try self.retrying(continuesAhead: true) { try self.sendTransaction() }
      let refused = self.refusedEvents().filter { self.told.insert(EventPlace($0)).inserted }
      return refused.isEmpty ? .done : .refused(refused)
    }
  }

  package func retract() {
    if self.connection.isConnected, self.connection.transactionStatus != .idle {
      try? self.rollBack()
    }
    self.forgetAhead()
  }

  package func commit() throws -> StoreAnswer {
    var isSame = true
    let answer = try self.attempt {
      if !self.isCommitInDoubt {
        do {
          try self.connection.execute("COMMIT")
        } catch let error as PostgresError where error.disposition == .retry {
          self.isCommitInDoubt = true
        }
      }
      if self.isCommitInDoubt { isSame = try self.commitAgain() }
      if isSame { self.finishTransaction() }
      return .done
    }
    guard isSame else {
      throw PostgresError(
        .retry, "postgres: the server refused rows that it had accepted before; run again")
    }
    return answer
  }

  /// Called when the answer to COMMIT was lost. Finds out whether it was executed, and executes it
  /// if not.
  ///
  /// - Returns: false if it was not executed and executing it would refuse rows that were not
  ///   reported.
  private func commitAgain() throws -> Bool {
    try self.retrying {
      // The server may still be committing; the lock on the row waits for that.
      try self.connection.begin()
      let isStored = try self.checkpoint.isStored(topics: self.topics, over: self.connection)
      try self.connection.execute("ROLLBACK")
      if isStored { return true }
      try self.sendTransaction()
      guard self.refusedEvents().allSatisfy({ self.told.contains(EventPlace($0)) }) else {
        return false
      }
      try self.connection.execute("COMMIT")
      return true
    }
  }

  /// Each event appears once, however many of its rows were refused.
  private func refusedEvents() -> [RefusedEvent] {
    var places: Set<EventPlace> = []
    let refusals = self.refusedRows.map { row in
      row.rows.refusal(ofRow: row.index, by: self.name, row.error)
    }
    return ((self.sealed?.refused ?? []) + refusals).filter {
      places.insert(EventPlace($0)).inserted
    }
  }

  /// Sends everything except the commit.
  private func sendTransaction() throws {
    var hasRepaired = false
    while true {
      var isChecking = false
      do {
        return try self.attemptTransaction(isChecking: &isChecking)
      } catch let error as PostgresError
        where error.refusesRow && self.care != .immediateConstraints
      {
        try self.rollBackAndCheckTables(after: error.sqlState)
        self.care = isChecking || self.care == .savepoints ? .immediateConstraints : .savepoints
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
    try self.rollBack()
    // The server may be another one than at the start, with sequences behind their tables.
    if sqlState == SQLState.uniqueViolation { try self.correctSequences() }
    var isComplete = true
    for rows in self.pending where rows.hasSealed {
      let isThere = try self.catalog.check(
        rows.tables, after: sqlState, over: self.connection)
      isComplete = isComplete && isThere
    }
    return isComplete
  }

  private func attemptTransaction(isChecking: inout Bool) throws {
    self.refusedRows.removeAll()
    self.refusedReads.removeAll()
    if self.isAhead {
      try self.connection.finishCopy()
    } else {
      try self.connection.beginLoad()
    }
    try self.checkpoint.store(
      topics: self.topics, completeThrough: self.completeThrough,
      verifies: self.isReconnected, over: self.connection)
    try self.beginPasses()
    if self.care == .immediateConstraints {
      try self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    }
    for rows in self.pending where !rows.sealed.rows.isEmpty {
      let all = rows.sealed.rows.indices
      if self.care == .none {
        try self.load(rows, all)
      } else {
        try self.loadCarefully(rows, all)
      }
    }
    try self.loadLateReferences()
    try self.closeRedriven(but: self.refusedEvents())
    try self.loadReads()
    try self.noteDeadLetters()
    // Checks the constraints that COMMIT would check while rows can still be set aside.
    isChecking = true
    let conditions = self.pending.filter(\.hasSealed).map(\.loader.typeCondition)
    let result = try self.connection.lastResult(
      of: "SET CONSTRAINTS ALL IMMEDIATE; SELECT "
        + (["true"] + conditions).joined(separator: " AND "))
    guard result[0, 0] == "t" else { throw TypesHaveChanged() }
  }

  /// The server may have read values as another type.
  private struct TypesHaveChanged: Error {}

  private func load(_ rows: PendingRows, _ range: Range<Int>) throws {
    if self.isRedriving, rows.tables.history == nil { return try self.markForRepair(rows, range) }
    // Loads the rows of one epoch at a time, because a later epoch may repeat known events.
    var start = range.lowerBound
    while start < range.upperBound {
      let epoch = rows.sealed.rows[start].epoch
      var end = start + 1
      while end < range.upperBound, rows.sealed.rows[end].epoch == epoch { end += 1 }
      try rows.loader.load(
        rows.sealed, rows: start..<end, sentCount: rows.sentCount, over: self.connection,
        isRereading: epoch > 1 || self.isRedriving)
      start = end
    }
  }

  /// Splits refused rows in half until each refused row is isolated.
  private func loadCarefully(_ rows: PendingRows, _ range: Range<Int>) throws {
    guard let error = try self.refusal(rows, range) else { return }
    if range.count == 1 {
      self.refusedRows.append(RefusedRow(rows: rows, index: range.lowerBound, error: error))
      return
    }
    let middle = range.lowerBound + range.count / 2
    try self.loadCarefully(rows, range.lowerBound..<middle)
    try self.loadCarefully(rows, middle..<range.upperBound)
  }

  /// Loads all rows or none.
  ///
  /// - Returns: why a row was refused.
  private func refusal(_ rows: PendingRows, _ range: Range<Int>) throws -> PostgresError? {
    try self.connection.refusal { try self.load(rows, range) }
  }

  /// Retries rows that refer to later rows. Requires a history, from which current rows are rebuilt
  /// in the right order.
  private func loadLateReferences() throws {
    var isGettingOn = !self.refusedRows.isEmpty
    while isGettingOn {
      isGettingOn = false
      var rest: [RefusedRow] = []
      for row in self.refusedRows {
        // foreign_key_violation
        if row.error.sqlState == SQLState.foreignKeyViolation, row.rows.tables.history != nil,
          try self.refusal(row.rows, row.index..<row.index + 1) == nil
        {
          isGettingOn = true
        } else {
          rest.append(row)
        }
      }
      self.refusedRows = rest
    }
  }

  private func noteDeadLetters() throws {
    try self.noteUnreadable()
    let letters = self.sealed?.letters ?? []
    for rows in self.pending {
      let entries =
        letters.filter { $0.rows === rows }.map(\.entry)
        + self.refusedRows.filter { $0.rows === rows }.map { $0.rows.deadLetter(ofRow: $0.index) }
      guard !entries.isEmpty else { continue }
      try rows.loader.noteDeadLetters(entries, among: rows.sealed, over: self.connection)
    }
    for letter in self.undecodable {
      try ResyncTable(entity: letter.entity, schema: self.configuration.schema).noteDeadLetters(
        [letter.entry], over: self.connection)
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
