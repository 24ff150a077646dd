internal import Clocks
internal import JSON
package import Pipeline
internal import PostgresClient

/// Loads records that were read in addition to the stream.
extension PostgresSink: CopyStore {
  /// Whether records can be read into this sink.
  package var takesReads: Bool { self.reads.clock != nil }

  /// The progress of reading an object's records; nil before the first pass.
  package func pass(over key: String) -> ReadPass? { self.reads.passes[key]?.pass }

  /// The name for all objects of a sink whose first run reads their records.
  private static let all = "*"

  /// The sink's first run was configured to read all records.
  package var beganWithReads: Bool { self.reads.passes[Self.all] != nil }

  /// Notes that the sink is new and needs all records.
  package func noteFirstReads() throws {
    guard let clock = self.reads.clock else { return }
    try self.session.retrying {
      try self.reads.passTable.note(entity: Self.all, over: $0)
      self.reads.passes = try self.reads.passTable.read(clock, over: $0)
    }
  }

  /// Notes that all records of an object will be read for the first time.
  package func awaitReads(of entity: String) throws {
    guard self.takesReads, self.pass(over: entity) == nil else { return }
    try self.session.retrying { try self.reads.passTable.await(entity: entity, over: $0) }
  }

  /// Prepares the connected sink for reading records.
  ///
  /// - Returns: whether the table of objects without change events is new.
  func openReads() throws -> Bool {
    guard self.configuration.reads != nil else { return false }
    return try self.session.retrying { connection in
      let hadPolls = try self.hasPollTable(over: connection)
      guard try self.catalog.prepareReads(over: connection) else {
        self.onNotice?(
          "records cannot be read from the org, because the role may not create the table "
            + "_etl_snapshot in schema \(self.configuration.schema)")
        return false
      }
      let clock = try DatabaseClock(over: connection, now: { self.session.now })
      self.reads.clock = clock
      try self.reads.passTable.forgetRefreshes(
        but: self.configuration.refreshes, over: connection)
      self.reads.passes = try self.reads.passTable.read(clock, over: connection)
      guard try self.hasPollTable(over: connection) else { return false }
      let polls = self.configuration.polls
      try connection.transaction { () throws(PostgresError) in
        try self.reads.pollTable.set(polls, over: connection)
      }
      self.reads.polls = try self.reads.pollTable.read(clock, over: connection)
      return !hadPolls
    }
  }

  /// Whether there is or was an object without change events.
  private func hasPollTable(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let name = self.catalog.bookkeeping.qualified(PollTable.name)
    return try connection.query("SELECT to_regclass($1) IS NOT NULL", [name])[0, 0] == "t"
  }

  package func lastReads(of entity: String) -> PollSchedule.LastReads {
    self.reads.polls[entity] ?? .init()
  }

  /// Accepts records that were read, in rows of a layout that the sink is ready for. `pass` is the
  /// progress of their pass including these records, or nil if they belong to none.
  package func write(_ batch: RecordBatch, pass: ReadPass?) throws {
    if let pass { self.open.passes[pass.key] = pass }
    guard batch.rowCount > 0 else { return }
    try self.write(batch)
    self.reads.fields[batch.layout.entity, default: .init()].readColumns =
      self.encoders[batch.layout]?.columns
  }

  package func passNumber(over key: String) -> Int { self.reads.passes[key]?.number ?? 0 }

  /// Whether records of the layout's object can be read into its tables. Tables of earlier versions
  /// may lack the columns if the role may not add them.
  package func takesReads(of layout: RecordLayout) -> Bool {
    guard self.takesReads, let tables = self.encoders[layout]?.rows.tables else { return false }
    return [tables.history, tables.current].compactMap { $0 }.allSatisfy(\.hasReadColumns)
  }

  /// If somebody dropped the kept events of a pass or altered the tables between runs, the pass
  /// starts again.
  func checkKept(_ rows: PendingRows) throws {
    let passes = self.reads.unfinishedPasses(over: rows.entity)
    guard self.takesReads, let kept = rows.loader.kept, !passes.isEmpty else { return }
    try self.session.retrying { connection in
      if try kept.isReady(over: connection) { return }
      self.onNotice?(
        "the snapshot of \(rows.entity) starts again because the events kept for it are missing")
      for pass in passes { self.reads.passes[pass.key]?.pass = nil }
    }
  }

  // MARK: Repair

  /// Whether all records of an object have to be read again.
  package func needsPass(over entity: String, topic: String) throws -> Bool {
    guard self.takesReads else { return false }
    return try self.session.unlessAway {
      try self.reads.missingRanges.needsPass(over: entity, topic: topic, over: $0)
    } ?? false
  }

  /// Records of an object whose rows may be wrong, ordered by ID. The first call for an object also
  /// marks the records that events have repaired.
  package func recordsToRepair(
    _ entity: String, after id: String, limit: Int
  ) throws -> [String]? {
    guard self.takesReads, let reads = self.configuration.reads else { return [] }
    return try self.session.unlessAway { connection in
      guard let current = try self.catalog.currentTable(of: entity, over: connection),
        current.hasReadColumns
      else { return [] }
      if id.isEmpty {
        try ResyncTable(entity: entity, schema: current.schema).closeGaps(
          current: current, over: connection)
      }
      return try RepairList(current).records(
        after: id, limit: limit, visibilityWait: reads.visibilityWait, over: connection)
    }
  }

  /// Whether the connection is idle.
  package var isIdle: Bool {
    self.sealed == nil && !self.session.isAhead && !self.session.isAway
  }

  /// Accepts IDs of records that were requested and not found; durable with the open commit.
  package func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64) {
    let known = self.open.unseen[entity]?.records ?? []
    self.open.unseen[entity] = (known + records, epoch, ordinal)
  }

  package func noteLeftOut(_ changes: RecordBatch) {
    let layout = changes.layout
    guard let event = changes.events.first, self.leftOut.insert(layout.entity).inserted else {
      return
    }
    let holdsChanges = self.configuration.mode.tableKinds.contains { kind in
      let name = try? TableMapping.tableName(of: layout.entity, kind, self.configuration)
      return name.map { self.fedTables.holdsChanges($0, of: layout.topic) } ?? false
    }
    let readCount = self.reads.passes[layout.entity]?.pass?.rowCount ?? 0
    guard holdsChanges || readCount > 0 else { return }
    // Any record may have changed, as after such an event.
    self.open.leftOut.append(
      (
        layout.entity,
        ResyncTable.Entry(
          .wildcard, recordID: nil,
          eventID: String(decoding: changes.bytes(event.eventID), as: UTF8.self),
          commitTimestamp: event.commitTimestamp, epoch: Int32(clamping: changes.epoch),
          ordinal: event.ordinal)
      ))
  }

  package func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    self.open.unreadable[entity, default: []].append(record)
  }

  package func repairCallsOfDay() throws -> Int {
    guard self.takesReads else { return 0 }
    return try self.session.retrying { try self.reads.repairCalls.ofDay(over: $0) }
  }

  package func noteRepairCalls(_ count: Int) { self.open.repairCalls += count }

  package func takeRefusedReads() -> [String: Int] {
    defer { self.reads.refused = [:] }
    return self.reads.refused
  }

  func writeReads(_ batch: RecordBatch, _ encoder: CopyEncoder, _ rows: PendingRows) {
    guard let readAt = batch.readAt, let clock = self.reads.clock else { return }
    encoder.readAt = clock.milliseconds(at: readAt)
    for index in batch.events.indices where batch.events[index].rowCount > 0 {
      let event = batch.events[index]
      do throws(RejectedValue) {
        try encoder.append(event: index, of: batch, to: &rows.openReads)
      } catch {
        let recordID = CopyEncoder.recordIDs(of: event, in: batch).first ?? nil
        self.onNotice?(
          "\(rows.entity) \(recordID ?? "without ID") was read and cannot be stored: \(error)")
        self.noteUnreadable(
          UnreadableRecord(recordID: recordID, stamp: event.commitTimestamp, reason: "\(error)"),
          of: rows.entity)
        self.reads.refuse(rows.entity)
      }
    }
  }

  // MARK: Transactions

  func loadReads(of commit: inout SealedCommit) throws {
    commit.changedReadCount = 0
    for rows in self.pending where !rows.sealedReads.rows.isEmpty {
      let all = rows.sealedReads.rows.indices
      if self.reads.passes[rows.entity]?.pass?.state != .complete, let current = rows.tables.current
      {
        try SeenRecords(current).add(rows.sealedReads, rows: all, over: self.connection)
      }
      var changedCount = 0
      try self.load(rows, all, commit.care, refused: &commit.refusedReads) { range in
        changedCount += try rows.loader.loadReads(
          rows.sealedReads, rows: range, over: self.connection)
      }
      commit.changedReadCount += changedCount
      self.note(newestStamp: rows.loader.newestStamp, of: rows.entity)
    }
    try self.storePasses(of: commit.content)
    for (entity, (records, epoch, ordinal)) in commit.content.unseen {
      try self.pending.first { $0.entity == entity && $0.tables.current != nil }?.loader.noteUnseen(
        records, epoch: epoch, ordinal: ordinal, over: self.connection)
    }
  }

  /// Notes that rows of the object, whatever their topic and layout, may now begin with such a
  /// read. If the transaction fails, the only cost is an unnecessary query.
  private func note(newestStamp: Int64?, of entity: String) {
    guard let newestStamp else { return }
    let newest = max(self.reads.passes[entity]?.newestStamp ?? newestStamp, newestStamp)
    self.reads.passes[entity, default: .init()].newestStamp = newest
    for rows in self.pending where rows.entity == entity { rows.loader.newestStamp = newest }
  }

  /// Begins passes before anything else in the transaction. Without a history, the events of a pass
  /// are kept from the transaction that begins it to the one that ends it.
  func beginPasses(of commit: SealedCommit) throws {
    for rows in self.pending {
      guard let current = rows.tables.current, current.hasReadColumns else { continue }
      let known = self.reads.unfinishedPasses(over: rows.entity)
      let sealed = commit.content.passes.values.filter { $0.entity == rows.entity }
      for pass in sealed where pass.number != self.reads.passes[pass.key]?.pass?.number {
        // Another pass needs its events until it ends.
        if known.isEmpty { try rows.loader.kept?.create(over: self.connection) }
        if pass.part == nil { try SeenRecords(current).begin(over: self.connection) }
        if pass.isRefresh { continue }
        try self.reads.passTable.forgetParts(
          of: rows.entity, but: pass.key, over: self.connection)
      }
      // The pass ends after its last reads are merged with its events.
      rows.loader.isKeeping = !known.isEmpty || sealed.contains { $0.state != .complete }
    }
    for hole in commit.holes {
      try self.reads.missingRanges.note(hole, over: self.connection)
    }
  }

  private func storePasses(of commit: OpenCommit) throws {
    guard let clock = self.reads.clock else { return }
    if commit.repairCalls > 0 {
      try self.reads.repairCalls.add(commit.repairCalls, over: self.connection)
    }
    var stamps: [String: Int64] = [:]
    for rows in self.pending where !rows.sealedReads.rows.isEmpty {
      guard let stamp = rows.loader.newestStamp else { continue }
      stamps[rows.entity] = max(stamps[rows.entity] ?? stamp, stamp)
    }
    for pass in commit.passes.values {
      let stamp = pass.part == nil ? stamps.removeValue(forKey: pass.entity) : nil
      try self.reads.passTable.store(pass, newestStamp: stamp, clock, over: self.connection)
    }
    for (entity, stamp) in stamps {
      try self.reads.passTable.note(newestStamp: stamp, entity: entity, over: self.connection)
    }
    for rows in self.pending {
      for pass in commit.passes.values where pass.entity == rows.entity {
        if self.reads.polls[pass.entity] != nil {
          try self.reads.pollTable.note(
            pass, begunAt: self.reads.passTable.begunAt(pass.key), tables: rows.tables.names,
            over: self.connection)
        }
        if pass.state == .complete { try self.finish(pass, rows, in: commit) }
      }
    }
  }

  private func finish(_ pass: ReadPass, _ rows: PendingRows, in commit: OpenCommit) throws {
    let begunAt = self.reads.passTable.begunAt(pass.key)
    // Another pass may begin in this transaction.
    let known = self.reads.unfinishedPasses(over: pass.entity).filter {
      commit.passes[$0.key] == nil
    }
    let others = commit.passes.values.filter { $0.entity == pass.entity && $0.state != .complete }
    if known.isEmpty, others.isEmpty {
      try rows.loader.kept?.drop(over: self.connection)
    }
    try self.noteComplete(pass, begunAt: begunAt)
    guard pass.part == nil else {
      if pass.isRefresh { return }
      try self.reads.passTable.forgetParts(of: pass.entity, but: nil, over: self.connection)
      return
    }
    if let current = rows.tables.current {
      try SeenRecords(current).end(begunAt: begunAt, over: self.connection)
    }
    try self.reads.missingRanges.close(
      entity: rows.entity, topic: rows.topic, over: self.connection)
  }
}
