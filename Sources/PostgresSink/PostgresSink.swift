internal import Glibc
package import JSON
package import Pipeline

/// Rows to PostgreSQL: history and current state, in one transaction with the positions.
///
/// Rows are kept in memory until their transaction is known to be committed. A lost connection, a
/// deadlock, a server that restarts: the whole transaction is sent again. When the answer to `COMMIT`
/// is lost, the row of the checkpoint tells whether it was done.
package final class PostgresSink: TransactionalSink {
  package let name: String
  /// Rows committed in this run.
  package private(set) var committedRowCount = 0
  /// Told of changed tables and the like, one sentence each.
  package var onNotice: ((String) -> Void)?

  private let configuration: PostgresSinkConfiguration
  private let catalog: TableCatalog
  private let views: ReportingViews
  private var checkpoint: PostgresCheckpoint
  private var connection: PostgresConnection
  private let takesOver: Bool

  /// By identity of the layout, which the encoder keeps alive.
  private var encoders: [ObjectIdentifier: (encoder: CopyEncoder, rows: PendingRows)] = [:]
  /// In the order in which they came; of one topic and entity the last has the newest tables.
  private var pending: [PendingRows] = []
  /// Of events that could not become rows.
  private var deadLetters: [(rows: PendingRows?, entity: String, entry: ResyncTable.Entry)] = []
  /// To be told by `prepare`.
  private var refused: [RefusedEvent] = []
  /// A row was refused: rows are loaded under savepoints, to find it.
  private var isCareful = false
  private var newestCommit: Int64?
  private var topics = "{}"
  private var renewedAt = ContinuousClock.now

  /// Connects.
  package init(
    name: String, configuration: PostgresSinkConfiguration, pipeline: String, org: String,
    owner: LeaseOwner, takesOver: Bool
  ) throws {
    self.name = name
    self.configuration = configuration
    self.catalog = TableCatalog(configuration)
    self.views = ReportingViews(schema: configuration.schema)
    self.checkpoint = PostgresCheckpoint(
      pipeline: pipeline, sink: name, org: org, owner: owner,
      bookkeeping: Bookkeeping(schema: configuration.schema))
    self.takesOver = takesOver
    self.connection = try PostgresConnection(configuration.connection)
  }

  /// Makes the sink's own tables, takes the lease.
  ///
  /// - Parameter positions: what the row of the checkpoint begins with if there is none; nil to
  ///   make none.
  /// - Returns: the stored positions; nil when the database knows nothing of this sink.
  @discardableResult
  package func open(
    creating positions: [String: TopicPosition]? = nil
  ) throws -> [String: TopicPosition]? {
    try self.retrying { try self.catalog.prepare(over: self.connection) }
    // A commit without answer may have been done; then the row is this run's already.
    return try self.retrying {
      try self.checkpoint.acquire(
        over: self.connection, takesOver: self.takesOver, creating: positions)
    }
  }

  /// The highest epoch among rows of these topics in any history table of the schema; nil when
  /// there are none. Reads whole tables: for a position that is missing.
  package func newestEpoch(ofTopics topics: [String]) throws -> Int? {
    try self.retrying {
      let schema = SQLIdentifier.quoted(self.configuration.schema)
      let tables = try self.connection.query(
        "SELECT table_name FROM \(schema)._etl_table WHERE kind = 'history'")
      let names = topics.map { SQLIdentifier.literal($0) }.joined(separator: ", ")
      var newest: Int?
      for row in 0..<tables.rowCount {
        guard let name = tables[row, 0] else { continue }
        let result = try self.connection.query(
          "SELECT max(_epoch) FROM \(schema).\(SQLIdentifier.quoted(name)) WHERE _topic IN (\(names))"
        )
        guard let epoch = result[0, 0].flatMap({ Int($0) }) else { continue }
        newest = max(newest ?? epoch, epoch)
      }
      return newest
    }
  }

  /// Ends the lease. An error only means that it ends by itself.
  package func close() { try? self.checkpoint.release(over: self.connection) }

  package var isDue: Bool { ContinuousClock.now - self.renewedAt > .seconds(20) }

  package var pendingByteCount: Int {
    self.pending.reduce(0) { $0 + $1.buffer.byteCount }
  }

  // MARK: Rows

  package func write(_ batch: RecordBatch) throws {
    let (encoder, rows) = try self.encoder(for: batch.layout)
    for index in batch.events.indices {
      let event = batch.events[index]
      if let time = event.commitTimestamp {
        self.newestCommit = max(self.newestCommit ?? time, time)
      }
      do throws(RejectedValue) {
        try encoder.append(event: index, of: batch, to: &rows.buffer)
      } catch {
        self.refuse(event, of: batch, rows: rows, reason: "\(error)")
      }
    }
  }

  private func refuse(
    _ event: RecordBatch.Event, of batch: RecordBatch, rows: PendingRows, reason: String
  ) {
    self.refused.append(
      RefusedEvent(
        topic: rows.topic, epoch: batch.epoch, ordinal: event.ordinal,
        reason: "sink '\(self.name)': \(reason)"))
    var recordIDs: [UInt8] = []
    batch.appendRecordIDs(of: event, to: &recordIDs)
    let replayID = ReplayID(batch.bytes(event.replayID)).hex
    for recordID in recordIDs.split(separator: UInt8(ascii: ",")) {
      self.deadLetters.append(
        (
          rows, rows.entity,
          ResyncTable.Entry(
            .deadLetter, recordID: String(decoding: recordID, as: UTF8.self),
            eventID: String(decoding: batch.bytes(event.eventID), as: UTF8.self),
            replayID: replayID, commitTimestamp: event.commitTimestamp,
            epoch: Int32(truncatingIfNeeded: batch.epoch), ordinal: event.ordinal)
        ))
    }
  }

  package func noteDeadLetter(_ letter: DeadLetter) throws {
    self.deadLetters.append(
      (
        nil, Self.entity(ofTopic: letter.topic),
        ResyncTable.Entry(
          .deadLetter, recordID: nil, eventID: letter.eventID, replayID: letter.replayID.hex)
      ))
  }

  /// `Opportunity` of `/data/OpportunityChangeEvent`; the last part of other topics' names.
  private static func entity(ofTopic topic: String) -> String {
    let last = topic.split(separator: "/").last.map { String($0) } ?? topic
    for suffix in ["__ChangeEvent", "ChangeEvent"] where last.hasSuffix(suffix) {
      let base = last.dropLast(suffix.count)
      if !base.isEmpty { return suffix.hasPrefix("__") ? "\(base)__c" : String(base) }
    }
    return last
  }

  private func encoder(
    for layout: RecordLayout
  ) throws -> (encoder: CopyEncoder, rows: PendingRows) {
    if let known = self.encoders[ObjectIdentifier(layout)] { return known }
    let tables = try self.retrying { try self.catalog.tables(for: layout, over: self.connection) }
    if !tables.changes.isEmpty {
      // Names of what other layouts write to may be others now.
      self.encoders = self.encoders.filter { $0.value.rows.entity != layout.entity }
      for change in tables.changes { self.onNotice?(change) }
    }
    for field in tables.discarded {
      self.onNotice?("\(layout.entity): field \(field) has no column and is left out")
    }
    try self.retrying { try self.updateViews(tables) }
    let last = self.pending.last { $0.topic == layout.topic && $0.entity == layout.entity }
    let rows: PendingRows
    if let last, last.tables.history == tables.history, last.tables.current == tables.current,
      last.tables.dataColumns == tables.dataColumns
    {
      rows = last
    } else {
      rows = PendingRows(
        topic: layout.topic, entity: layout.entity, tables: tables,
        delete: self.configuration.delete)
      self.pending.append(rows)
    }
    let made = (encoder: CopyEncoder(layout: layout, tables: tables), rows: rows)
    self.encoders[ObjectIdentifier(layout)] = made
    return made
  }

  private func updateViews(_ tables: LayoutTables) throws {
    try self.connection.transaction { () throws(PostgresError) in
      if let current = tables.current {
        let outcome = try self.views.updateLive(current, over: self.connection)
        if outcome == .remade || outcome == .kept {
          let name = ReportingViews.liveName(current.name)
          self.onNotice?(
            outcome == .remade
              ? "view \(name) has other columns and was made anew; grant it again"
              : "view \(name) lacks new columns, since other views stand on it")
        }
      }
      _ = try self.views.updateFreshness(over: self.connection)
    }
  }

  // MARK: Transactions

  package func prepare(
    _ topics: [String: JSONValue], refused report: (RefusedEvent) throws -> Void
  ) throws {
    let members = topics.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value) }
    self.topics = JSONValue(.object(members)).text()
    try self.retrying { try self.sendTransaction() }
    for event in self.refused { try report(event) }
  }

  package func commit() throws {
    do {
      try self.connection.execute("COMMIT")
    } catch {
      guard error.disposition == .retry else { throw error }
      let known = self.refused.count
      try self.retrying {
        if try self.checkpoint.isStored(topics: self.topics, over: self.connection) { return }
        try self.sendTransaction()
        guard self.refused.count == known else {
          throw PostgresError(
            .retry, "postgres: rows were refused that had been taken before; run again")
        }
        try self.connection.execute("COMMIT")
      }
    }
    self.finishTransaction()
  }

  private func finishTransaction() {
    for rows in self.pending {
      self.committedRowCount += rows.buffer.rows.count
      rows.buffer.removeAll()
    }
    // Of tables that have changed only the newest is written to from now on.
    let used = Set(self.encoders.values.map { ObjectIdentifier($0.rows) })
    self.pending.removeAll { !used.contains(ObjectIdentifier($0)) }
    self.deadLetters.removeAll()
    self.refused.removeAll()
    self.isCareful = false
    self.renewedAt = .now
  }

  /// Everything but the commit.
  private func sendTransaction() throws {
    try self.connection.begin()
    try self.checkpoint.store(
      topics: self.topics, completeThrough: self.newestCommit.map { $0 - 5000 },
      over: self.connection)
    do {
      try self.load()
    } catch let error as PostgresError where error.disposition == .rejectedRow && !self.isCareful {
      self.isCareful = true
      try self.connection.execute("ROLLBACK")
      return try self.sendTransaction()
    }
    try self.noteDeadLetters()
  }

  private func load() throws {
    if self.isCareful { try self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE") }
    for rows in self.pending where !rows.buffer.rows.isEmpty {
      let all = 0..<rows.buffer.rows.count
      if self.isCareful {
        try self.loadCarefully(rows, all)
      } else {
        try self.load(rows, all)
      }
    }
  }

  private func load(_ rows: PendingRows, _ range: Range<Int>) throws {
    // A run of rows of one epoch at a time; an epoch after the first may bring known events again.
    var start = range.lowerBound
    while start < range.upperBound {
      let epoch = rows.buffer.rows[start].epoch
      var end = start + 1
      while end < range.upperBound, rows.buffer.rows[end].epoch == epoch { end += 1 }
      try rows.loader.load(
        rows.buffer, rows: start..<end, over: self.connection, isRereading: epoch > 1)
      start = end
    }
  }

  /// Halves what is refused until the refused rows stand alone.
  private func loadCarefully(_ rows: PendingRows, _ range: Range<Int>) throws {
    try self.connection.execute("SAVEPOINT rows")
    do {
      try self.load(rows, range)
      try self.connection.execute("RELEASE SAVEPOINT rows")
      return
    } catch let error as PostgresError where error.disposition == .rejectedRow {
      try self.connection.execute("ROLLBACK TO SAVEPOINT rows; RELEASE SAVEPOINT rows")
      if range.count == 1 {
        let event = rows.refusal(
          ofRow: range.lowerBound, reason: "sink '\(self.name)': \(error.message)")
        // The same transaction may have been sent before.
        if !self.refused.contains(event) { self.refused.append(event) }
        try rows.loader.noteDeadLetters(
          [rows.deadLetter(ofRow: range.lowerBound)], over: self.connection)
        return
      }
    }
    let middle = range.lowerBound + range.count / 2
    try self.loadCarefully(rows, range.lowerBound..<middle)
    try self.loadCarefully(rows, middle..<range.upperBound)
  }

  private func noteDeadLetters() throws {
    for (rows, entity, entry) in self.deadLetters {
      if let rows {
        try rows.loader.noteDeadLetters([entry], over: self.connection)
      } else {
        try ResyncTable(entity: entity, schema: self.configuration.schema).note(
          [entry], over: self.connection)
      }
    }
  }

  // MARK: Retries

  private static let delays: [Duration] = [
    .milliseconds(50), .milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2),
    .seconds(4), .seconds(8), .seconds(8), .seconds(8),
  ]

  /// Does it again, on a new connection if need be, as long as that may help. `body` begins its own
  /// transaction.
  private func retrying<Value>(_ body: () throws -> Value) throws -> Value {
    var delays = Self.delays.makeIterator()
    while true {
      do {
        if !self.connection.isConnected {
          try self.connection.reset()
        } else if self.connection.transactionStatus != .idle {
          try self.connection.execute("ROLLBACK")
        }
        return try body()
      } catch let error as PostgresError {
        guard error.disposition == .retry, let delay = delays.next() else { throw error }
        self.onNotice?("\(error.message); again in \(delay)")
        let (seconds, attoseconds) = delay.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
      }
    }
  }
}
