package import Pipeline
internal import PostgresClient

/// Writes rows to PostgreSQL: history and current state, in one transaction with the positions.
///
/// Rows are kept in memory until their transaction is known to be committed. After a lost
/// connection, a deadlock or a restart of the server, the whole transaction is sent again. If the
/// answer to `COMMIT` is lost, the checkpoint row shows whether it was executed. During a run this
/// class never waits: see `PostgresSession`.
package final class PostgresSink: TableStore, LeasedStore, OverlappingStore {
  package let name: String
  /// Rows committed in this run.
  package private(set) var committedRowCount = 0
  /// Records that were read, committed in this run.
  package private(set) var committedReadCount = 0
  /// Rows that these reads have added or changed.
  package private(set) var changedReadCount = 0
  package var whileWaiting: (() -> Bool)?
  /// Receives a notice for each schema change, one sentence each.
  package var onNotice: ((String) -> Void)?
  /// Receives a sentence for each missing object that was recreated, and for each view that shows
  /// too little.
  package var onRepair: ((String) -> Void)? {
    get { self.catalog.onRepair }
    set { self.catalog.onRepair = newValue }
  }
  package let configuration: PostgresSinkConfiguration
  let catalog: TableCatalog
  let views: ReportingViews
  private let runs: RunTable
  package let session: PostgresSession
  var connection: PostgresConnection { self.session.connection }
  private let feeder: TableFeeder

  /// Layouts with the same tables share rows, whatever fields each has.
  private(set) var encoders = LayoutCache<
    (encoder: CopyEncoder, rows: PendingRows, columns: [String])
  >()
  /// In order of arrival. For a topic and entity, the last has the newest tables.
  private(set) var pending: [PendingRows] = []
  var open = OpenCommit()
  var sealed: SealedCommit?
  /// Current tables whose views were locked, by name.
  var dueViews: [String: ReportedTables] = [:]
  /// Sentences about views in this run.
  var warned: Set<String> = []
  /// Tables were created or changed and are not yet filled from their histories.
  private var hasUnfilledTables = false
  /// Tables of each topic, stored with its position.
  var fedTables: FedTables
  var reads: KnownReads
  /// Objects whose changes this run keeps from the sink.
  var leftOut: Set<String> = []

  /// Connects.
  ///
  /// - Parameters:
  ///   - topics: the topics of the run.
  ///   - takesOver: takes the lease from another run, and the tables from another pipeline or topic
  ///     that fed them.
  ///   - acceptsMissing: recreates missing tables that cannot be rebuilt, without rows.
  package init(
    name: String, configuration: PostgresSinkConfiguration, pipeline: String, org: String,
    topics: [String] = [], owner: LeaseOwner, takesOver: Bool, acceptsMissing: Bool = false
  ) throws {
    self.name = name
    self.configuration = configuration
    self.feeder = TableFeeder(pipeline: pipeline, sink: name, topics: topics, takesOver: takesOver)
    self.catalog = TableCatalog(configuration, feeder: self.feeder)
    self.catalog.acceptsMissing = acceptsMissing
    self.views = ReportingViews(configuration)
    self.runs = RunTable(pipeline: pipeline, sink: name, self.catalog.bookkeeping)
    self.fedTables = FedTables(pipeline: pipeline, sink: name, configuration)
    self.reads = KnownReads(pipeline: pipeline, sink: name, self.catalog.bookkeeping)
    self.session = try PostgresSession(
      configuration, self.catalog,
      PostgresCheckpoint(
        pipeline: pipeline, sink: name, org: org, owner: owner,
        bookkeeping: self.catalog.bookkeeping))
  }

  /// Creates the sink's own tables, takes the lease, and rebuilds dropped tables where possible.
  ///
  /// - Parameters:
  ///   - positions: the initial content of a new checkpoint row; nil creates none.
  ///   - isKnown: an earlier run has used the schema.
  /// - Returns: the stored positions; nil if the database has no row for this sink.
  @discardableResult
  package func open(
    creating positions: [String: TopicPosition]? = nil, isKnown: Bool = false
  ) throws -> [String: TopicPosition]? {
    if positions == nil, let concern = DatabaseEncoding.concern(self.connection) {
      // Tables that exist are kept up to date: dead letters are kept, events in the service are not.
      let isNew = try self.session.retrying {
        try self.catalog.existingBookkeeping(over: $0).isEmpty
      }
      if isNew { throw DatabaseEncoding.refusal(concern) }
      self.onRepair?(concern)
    }
    try self.session.retrying { connection in
      if isKnown { try self.catalog.checkSchema(over: connection) }
      try self.catalog.prepare(over: connection)
      try self.session.checkpoint.checkOrg(over: connection)
    }
    try self.session.retrying { _ in _ = try self.session.correctSequences() }
    let changes = try self.session.retrying {
      try self.catalog.takeOverFeeds(org: self.session.checkpoint.org, over: $0)
    }
    for change in changes { self.onNotice?(change) }
    try self.session.retrying { try self.catalog.checkFeeds(over: $0) }
    // An unanswered commit may have been executed; the row then already belongs to this run.
    let stored = try self.session.retrying { connection in
      try self.session.checkpoint.acquire(
        over: connection, takesOver: self.feeder.takesOver, creating: positions)
    }
    try self.session.retrying { try self.fedTables.read(over: $0) }
    let hasNewPolls = try self.openReads()
    self.reads.missingRanges.begin(at: stored ?? [:])
    if stored != nil {
      try self.repairTables()
      try self.warnOfReaders()
      try self.warnOfForeignViews()
    }
    let isOutdated = try self.session.retrying { try self.views.isFreshnessOutdated(over: $0) }
    if isOutdated || hasNewPolls && stored != nil {
      try self.updateViews(nil)
    }
    return stored
  }

  /// Recreates what somebody has dropped: current tables, which are filled from the history, and
  /// views. Also completes tables that a killed run left half-filled.
  func repairTables() throws {
    let changes = try self.session.retrying { try self.catalog.restore(over: $0) }
    for change in changes { self.onRepair?(change) }
    // The views of a renamed table were renamed with it.
    for table in try self.fillTables() { try self.updateViews(table) }
    let tables = try self.session.retrying { try self.catalog.tablesWithoutView(over: $0) }
    for reported in tables where try self.updateViews(reported) == .created {
      let table = reported.current
      // The view is created before the first row. An empty table may lack one if the run that
      // created it was killed.
      let hasRows = try self.session.retrying {
        try $0.query("SELECT EXISTS (SELECT FROM \(table.qualifiedName))")
      }
      guard hasRows[0, 0] == "t" else { continue }
      self.onRepair?(
        "view \(ReportingViews.liveName(table.name)) was missing and has been created again; "
          + "grant privileges on it again")
    }
  }

  /// - Returns: the tables whose current rows have come from the history.
  @discardableResult
  private func fillTables() throws -> [ReportedTables] {
    let unfilled = try self.session.retrying { try self.catalog.unfilledTables(over: $0) }
    for tables in unfilled {
      let refold = Refold(
        history: tables.history, current: tables.current, delete: self.configuration.delete,
        visibilityWait: self.configuration.reads?.visibilityWait ?? ReadMerge.visibilityWait)
      let counts = try self.session.retrying { connection in
        try refold.refoldAll(over: connection) { _ in
          // With many rows this takes longer than a lease; a failure shows at the next commit.
          try? self.session.checkpoint.renew(over: connection)
        }
      }
      try self.session.retrying { try self.catalog.noteFilled(tables.current, over: $0) }
      self.onRepair?(
        "table \(tables.current.qualifiedName): \(counts.checked) records rebuilt from the history")
    }
    return unfilled.map { ReportedTables(current: $0.current, history: $0.history) }
  }

  /// The former owner of the lease; nil if no other owner held it.
  package var formerLease: (owner: String, fence: Int)? { self.session.checkpoint.formerLease }

  /// The highest epoch among rows of these topics in any table of the schema; nil if there are
  /// none. Reads whole tables, so it is only used when a position is missing.
  package func newestEpoch(ofTopics topics: [String]) throws -> Int? {
    try self.session.retrying { connection in
      let schema = SQLIdentifier.quoted(self.configuration.schema)
      let tables = try connection.query(
        """
        SELECT table_name, kind, entity FROM \(schema)._etl_table \
        WHERE to_regclass(quote_ident($1) || '.' || quote_ident(table_name)) IS NOT NULL
        """, [self.configuration.schema])
      if let error = try self.catalog.hiddenBookkeeping(
        and: (0..<tables.rowCount).compactMap { tables[$0, 0] }, over: connection)
      {
        throw error
      }
      let names = topics.map { SQLIdentifier.literal($0) }.joined(separator: ", ")
      let entities = Set(topics.map { TopicName.entity($0) })
      var newest: Int?
      for row in 0..<tables.rowCount {
        guard let name = tables[row, 0], let entity = tables[row, 2] else { continue }
        var sql = "SELECT max(_epoch) FROM \(schema).\(SQLIdentifier.quoted(name))"
        if tables[row, 1] == TableDefinition.Kind.history.rawValue {
          sql += " WHERE _topic IN (\(names))"
        } else if self.configuration.mode != .current
          || !entities.contains(entity) && !topics.contains(where: TopicName.isChannel)
        {
          // Current rows do not show their topic.
          continue
        }
        guard let epoch = try connection.query(sql).number(0, 0).map(Int.init) else {
          continue
        }
        newest = max(newest ?? epoch, epoch)
      }
      return newest
    }
  }

  /// Ends the lease. After an error, it expires by itself.
  ///
  /// - Parameter run: is added to `_etl_run`, unless the connection is lost or another run has the lease.
  /// - Returns: why the run could not be added; nil if it was.
  @discardableResult
  package func close(adding run: RunRow? = nil) -> String? {
    self.session.leaveSpare(isLost: true)
    guard self.connection.isConnected else { return run.map { _ in "the connection is lost" } }
    if self.connection.transactionStatus != .idle { try? self.session.rollBack() }
    self.updateDueViews()
    self.countBookkeeping()
    defer { try? self.session.checkpoint.release(over: self.connection) }
    guard let run else { return nil }
    do {
      let checkpoint = self.session.checkpoint
      guard let places = try checkpoint.places() else { return "the run had no lease" }
      try self.runs.add(run, places: places, over: self.connection)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// The records whose values were erased from the tables.
  package func erasedRecords() throws -> ErasedRecords {
    try self.session.retrying {
      try ErasedTable(Bookkeeping(schema: self.configuration.schema)).records(over: $0)
    }
  }

  /// Nothing is left to do: the transaction has done it.
  package func complete() {}

  package var isDue: Bool { self.session.isDue }

  package func renewLease() throws {
    guard self.connection.isConnected, self.connection.transactionStatus == .idle else { return }
    self.session.renewLease()
    self.updateDueViews()
    self.countBookkeeping()
  }

  package var pendingByteCount: Int {
    self.pending.reduce(0) { $0 + $1.open.byteCount + $1.openReads.byteCount }
  }

  // MARK: Rows

  package func isReady(for layout: RecordLayout) -> Bool { self.encoders[layout] != nil }

  package func makeReady(for layout: RecordLayout) throws -> StoreAnswer {
    try self.session.answering(for: self.pending) {
      try self.makeEncoder(for: layout)
      return .done
    }
  }

  package func noteCurrent(_ layout: RecordLayout) {
    guard self.catalog.currentSchemas[layout.entity] != layout.schemaID else { return }
    self.catalog.currentSchemas[layout.entity] = layout.schemaID
    self.encoders.removeAll { $0.rows.entity == layout.entity }
  }

  package func noteRecent(_ layout: RecordLayout) {
    if self.catalog.currentSchemas[layout.entity] != layout.schemaID {
      self.catalog.currentSchemas[layout.entity] = nil
    }
  }

  package func write(_ batch: RecordBatch) throws {
    guard let (encoder, rows, _) = self.encoders[batch.layout] else {
      preconditionFailure("\(batch.layout.entity): written without being ready")
    }
    if batch.readAt != nil { return self.writeReads(batch, encoder, rows) }
    if self.catalog.currentSchemas[rows.entity] == batch.layout.schemaID {
      self.catalog.currentSchemas[rows.entity] = nil
    }
    // Other times are wrong and say nothing about the progress of the tables.
    let plausible = FedTables.plausibleCommits(
      latest: batch.latestCommit, clock: self.configuration.connection.clock)
    for index in batch.events.indices {
      let event = batch.events[index]
      if event.rowCount > 0, let time = event.commitTimestamp, plausible.contains(time) {
        rows.note(commit: time)
      }
      do throws(RejectedValue) {
        try encoder.append(event: index, of: batch, to: &rows.open)
      } catch {
        self.refuse(event, of: batch, rows: rows, error)
      }
    }
    // Existing rows are skipped, which a COPY cannot do.
    if batch.isRedriven { return self.noteRedriven(batch) }
    self.session.sendAhead(rows)
  }

  private func refuse(
    _ event: RecordBatch.Event, of batch: RecordBatch, rows: PendingRows, _ value: RejectedValue
  ) {
    self.open.refused.append(
      RefusedEvent(
        topic: rows.topic, epoch: batch.epoch, ordinal: event.ordinal,
        reason: "refused before it was sent to the database (sink '\(self.name)'): \(value)",
        refusal: DeadLetter.Refusal(sink: self.name, column: value.column)))
    let replayID = ReplayID(batch.bytes(event.replayID)).hex
    let eventID = PostgresText.storable(
      String(decoding: batch.bytes(event.eventID), as: UTF8.self))
    let recordIDs = CopyEncoder.recordIDs(of: event, in: batch)
    // An event without record IDs is also noted.
    for recordID in recordIDs.isEmpty ? [nil] : recordIDs {
      let letter = ResyncTable.Entry(
        .deadLetter, recordID: recordID, eventID: eventID,
        replayID: replayID, commitTimestamp: event.commitTimestamp,
        epoch: Int32(truncatingIfNeeded: batch.epoch), ordinal: event.ordinal)
      self.open.letters.append((rows, letter))
      rows.open.appendGap(letter)
    }
  }

  /// Looks up the tables of a layout, and creates or changes them.
  private func makeEncoder(for layout: RecordLayout) throws {
    if self.encoders[layout] != nil { return }
    try self.checkTopic(of: layout)
    let tables = try self.session.retrying { try self.catalog.tables(for: layout, over: $0) }
    if !tables.changes.isEmpty {
      // The names of tables and columns of other layouts may have changed.
      self.encoders.removeAll { $0.rows.entity == layout.entity }
      for change in tables.changes { self.onNotice?(change) }
      self.hasUnfilledTables = true
      try self.noteStates(of: layout.entity)
    }
    // Includes changes of an earlier attempt.
    if self.hasUnfilledTables { try self.fillTables() }
    self.hasUnfilledTables = false
    for warning in tables.warnings { self.warn(warning) }
    for field in tables.discarded {
      self.onNotice?("\(layout.entity): field \(field) has no column and is not loaded")
    }
    try self.updateViews(
      tables.current.map { ReportedTables(current: $0, history: tables.history) })
    if !tables.changes.isEmpty { try self.comment(on: layout.entity) }
    if !tables.changes.isEmpty,
      layout.entity == ChangesView.Users.entity || FieldHistory.isFieldHistory(layout.entity)
    {
      try self.updateAllChanges()
    }
    if !tables.changes.isEmpty { try self.updateFormulas(besides: layout.entity) }
    if !tables.changes.isEmpty { try self.warnOfReaders() }
    self.fedTables.add(tables.names, topic: layout.topic)
    let last = self.pending.last { $0.topic == layout.topic && $0.entity == layout.entity }
    // Other layouts are looked up again, so that all later events go to the same rows.
    if let last, !last.isFor(tables) {
      self.encoders.removeAll { $0.rows.entity == layout.entity }
    }
    for rows in self.pending where rows.entity == layout.entity { try rows.adopt(tables) }
    let rows: PendingRows
    if let last, last.open.columnCount == tables.dataColumns.count {
      rows = last
    } else {
      rows = PendingRows(
        topic: layout.topic, entity: layout.entity, tables: tables, self.configuration,
        newestStamp: self.reads.passes[layout.entity]?.newestStamp)
      self.pending.append(rows)
    }
    try self.checkKept(rows)
    let encoder = CopyEncoder(
      layout: layout, tables: tables,
      numericHasInfinity: self.connection.serverVersion >= 140_000)
    self.encoders.insert((encoder, rows, tables.columnNames), for: layout)
  }

  /// Events of a record can be ordered only within one topic, and a history would contain events
  /// delivered by two topics twice.
  private func checkTopic(of layout: RecordLayout) throws(PostgresError) {
    let known = self.encoders.values.first {
      $0.rows.entity == layout.entity && $0.rows.topic != layout.topic
    }
    let other =
      known?.rows.topic
      ?? self.feeder.topics.first {
        $0 != layout.topic && !TopicName.isChannel($0) && TopicName.entity($0) == layout.entity
      }
    guard let other else { return }
    throw PostgresError(
      .configuration,
      "postgres: \(layout.entity) arrives on both \(other) and \(layout.topic), whose relative "
        + "order is not known; subscribe to one of them, take the object out of source.lookups, or "
        + "give one a pipeline of its own that writes to other tables")
  }

  // MARK: Transactions

  package func seal(isLast: Bool) throws {
    precondition(self.sealed == nil, "a commit is sealed while another one is on its way")
    self.sealed = SealedCommit(self.open)
    self.open = OpenCommit()
    self.session.isSealed = true
    for rows in self.pending { rows.seal() }
  }

  /// Removes the sealed commit, whose transaction is committed.
  func finish(_ commit: SealedCommit) {
    self.sealed = nil
    let byteCount = self.pending.reduce(0) { $0 + $1.sealed.bytes.count }
    self.committedRowCount -= commit.refusedRows.count
    self.changedReadCount += commit.changedReadCount
    for rows in self.pending {
      self.committedRowCount += rows.sealed.rows.count
      self.committedReadCount += rows.sealedReads.rows.count
      rows.removeSealed()
    }
    // If tables have changed, later rows go only to the newest.
    let used = Set(self.encoders.values.map { ObjectIdentifier($0.rows) })
    self.pending.removeAll { !used.contains(ObjectIdentifier($0)) && $0.isEmpty }
    self.reads.committed(commit)
    for read in commit.refusedReads {
      self.onNotice?(
        "a \(read.rows.entity) that was read cannot be stored: \(read.error.message)")
    }
    self.session.committed(topics: commit.topics)
    if self.whileWaiting != nil { self.session.openSpare(for: self.pending, byteCount: byteCount) }
  }
}
