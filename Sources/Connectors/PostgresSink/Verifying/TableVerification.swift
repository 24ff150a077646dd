package import Pipeline
package import PostgresClient

/// Compares a current table with the records of its object as the org has them.
///
/// The rows' values never leave the database: records are copied into a temporary table, encoded as
/// runs encode them, and compared there. A record that differs is a candidate. It counts as drift
/// if it still differs after it was read again. Writes nothing but temporary tables, until
/// `noteForRepair`. Used by one thread at a time; needs its own session, so a pooler in transaction
/// mode does not work.
package final class TableVerification {
  package let table: VerifiedTable
  private let connection: PostgresConnection
  private let encoder: CopyEncoder
  private let statements: VerificationStatements
  private var buffer: RowBuffer
  /// Records without a row that have not been compared yet.
  private var omitted: [OmittedRecord] = []
  private var omissions = OmissionReasons()
  /// Records without an ID, by kind.
  private var unnamed: [String: Int] = [:]
  private var receivedCount = 0
  /// The number of randomly chosen records whose values were compared.
  private var sampled = 0
  /// Columns that some records lacked.
  private var absent: Set<Int> = []

  private static let maxRows = 10_000
  private static let maxBytes = 8 << 20

  /// - Parameters:
  ///   - layout: the layout of the records after all stages.
  ///   - horizon: milliseconds since 1970; later changes are not compared.
  ///   - comparesStamps: `SystemModstamp` shows changes, because no field of the layout does.
  package init(
    _ table: VerifiedTable, layout: RecordLayout, horizon: Int64, comparesStamps: Bool = false,
    over connection: PostgresConnection
  ) throws(PostgresError) {
    self.table = table
    self.connection = connection
    self.encoder = CopyEncoder(
      layout: layout, tables: table.tables,
      numericHasInfinity: connection.serverVersion >= 140_000)
    self.buffer = RowBuffer(columnCount: table.tables.dataColumns.count)
    self.statements = VerificationStatements(
      table, horizon: horizon, comparesStamps: comparesStamps)
    do throws(PostgresError) {
      try connection.execute(self.statements.create)
    } catch {
      throw try Self.explained(error, over: connection)
    }
  }

  /// The remedy if temporary tables cannot be created.
  private static func explained(
    _ error: PostgresError, over connection: PostgresConnection
  ) throws(PostgresError) -> PostgresError {
    switch error.sqlState {
    case SQLState.insufficientPrivilege:
      let names = try connection.query("SELECT current_database(), current_user")
      let (database, role) = (names[0, 0] ?? "", names[0, 1] ?? "")
      return PostgresError(
        .refused,
        "postgres: role \(role) is not allowed to create temporary tables in \(database), which "
          + "verify compares in; ask the owner to run GRANT TEMPORARY ON DATABASE "
          + "\(SQLIdentifier.quoted(database)) TO \(SQLIdentifier.quoted(role))",
        sqlState: error.sqlState)
    case SQLState.readOnlySQLTransaction:
      return PostgresError(
        .refused,
        "postgres: the database is read-only, and verify needs temporary tables; use the primary "
          + "in url", sqlState: error.sqlState)
    default: return error
    }
  }

  // MARK: All records

  /// Takes records of the whole object, in rows of the layout, and those that have no row.
  package func take(_ batch: RecordBatch, omitted: [OmittedRecord] = []) throws {
    self.receivedCount += omitted.count + batch.events.count { $0.rowCount > 0 }
    try self.encode(batch, omitted)
    if self.buffer.rows.count + self.omitted.count >= Self.maxRows
      || self.buffer.byteCount >= Self.maxBytes
    {
      try self.compare(.pass)
    }
  }

  /// Forgets the records so far, because all are read again.
  package func startOver() throws(PostgresError) {
    self.buffer.removeAll()
    self.omitted = []
    self.omissions = OmissionReasons()
    self.unnamed = [:]
    self.receivedCount = 0
    try self.connection.execute(VerificationStatements.forget)
  }

  /// Called after all records. Finds rows without a record.
  package func finishPass() throws {
    try self.compare(.pass)
    try self.inTransaction {
      try self.connection.execute("ANALYZE \(VerificationStatements.seen)")
      try self.connection.execute(self.statements.findExtra)
    }
  }

  // MARK: Some records

  /// IDs of randomly chosen records that are equal so far.
  package func sample(_ count: Int) throws(PostgresError) -> [String] {
    let result = try self.connection.query(
      """
      SELECT id FROM \(VerificationStatements.seen) WHERE kind = 'equal' ORDER BY random() \
      LIMIT \(count)
      """)
    return (0..<result.rowCount).compactMap { result[$0, 0] }
  }

  /// Compares records of the sample.
  package func takeSample(_ batch: RecordBatch, omitted: [OmittedRecord] = []) throws {
    try self.encode(batch, omitted)
    try self.compare(.sample)
  }

  // MARK: Candidates

  /// Some of the records that differed when they were last read, ordered by ID.
  ///
  /// - Parameters:
  ///   - round: the number of the reading, from 1; records already read in it are left out.
  ///   - id: only records after this ID.
  package func candidates(
    inRound round: Int, after id: String, limit: Int
  ) throws(PostgresError) -> [String] {
    let result = try self.connection.query(
      """
      SELECT id FROM \(VerificationStatements.candidates) WHERE round < $1::integer AND id > $2 \
      AND kind IN \(VerificationStatements.drift) ORDER BY id LIMIT \(limit)
      """, ["\(round)", id])
    return (0..<result.rowCount).compactMap { result[$0, 0] }
  }

  /// Compares candidates that were read again. Candidates that are neither in the batch nor missing
  /// could not be read.
  ///
  /// - Parameter missing: IDs that were found neither as records nor in the recycle bin.
  package func takeAgain(
    _ batch: RecordBatch, asked: [String], missing: [String], omitted: [OmittedRecord] = [],
    round: Int
  ) throws {
    try self.encode(batch, omitted)
    try self.inTransaction("; \(DeltaTable.planSettings)") {
      try self.connection.query(
        """
        UPDATE \(VerificationStatements.candidates) SET round = $1::integer, kind = 'unreadable', \
        fields = NULL WHERE id = ANY ($2::text[])
        """, ["\(round)", SQLArray.literal(asked)])
      try self.connection.query(self.statements.judgeMissing, [SQLArray.literal(missing)])
      let columns = try self.copyBuffer()
      try self.connection.execute(self.statements.compareAgain(columns: columns))
    }
  }

  /// Makes runs read the differing records again.
  package func noteForRepair() throws(PostgresError) {
    try self.connection.transaction { () throws(PostgresError) in
      try self.connection.execute(self.statements.noteForRepair)
    }
  }

  // MARK: Rows

  private func encode(_ batch: RecordBatch, _ omitted: [OmittedRecord]) throws {
    var omitted = omitted
    for index in batch.events.indices where batch.events[index].rowCount > 0 {
      let event = batch.events[index]
      do throws(RejectedValue) {
        try self.encoder.append(event: index, of: batch, to: &self.buffer)
      } catch {
        omitted.append(
          OmittedRecord(
            .unreadable, recordID: CopyEncoder.recordIDs(of: event, in: batch).first ?? nil,
            stamp: event.commitTimestamp, reason: "\(error)"))
      }
    }
    for record in omitted {
      self.omissions.add(record)
      if record.recordID == nil {
        self.unnamed["\(record.kind.rawValue)_missing", default: 0] += 1
      } else {
        self.omitted.append(record)
      }
    }
  }

  private func compare(_ origin: VerificationStatements.Origin) throws {
    let count = self.buffer.rows.count + self.omitted.count
    guard count > 0 else { return }
    try self.inTransaction("; \(DeltaTable.planSettings)") {
      if origin == .sample { self.sampled += count }
      let columns = try self.copyBuffer()
      try self.connection.execute(self.statements.compare(origin, columns: columns))
    }
  }

  /// Copies the buffer into the temporary table, and empties it.
  ///
  /// - Returns: places of the columns that all rows have.
  private func copyBuffer() throws -> [Int] {
    defer {
      self.buffer.removeAll()
      self.omitted = []
    }
    var counts = Array(repeating: 0, count: self.buffer.columnCount)
    try self.connection.copyIn(self.statements.copy) { writer in
      var row = CopyRow()
      var cellOfColumn = Array(repeating: -1, count: self.buffer.columnCount)
      for source in self.buffer.rows {
        for index in source.cells { cellOfColumn[Int(self.buffer.cells[index].column)] = index }
        row.begin(fieldCount: 4 + self.table.columns.count)
        row.value(self.buffer.bytes[source.recordID])
        row.time(source.read?.stamp)
        row.value(source.change == .readDeletion)
        row.null()
        for column in self.table.columns {
          let index = cellOfColumn[column]
          guard index >= 0, !self.buffer.cells[index].isNull else {
            row.null()
            continue
          }
          let cell = self.buffer.cells[index]
          let start = Int(cell.offset)
          row.value(self.buffer.bytes[start..<start + Int(cell.count)])
        }
        // Records in the recycle bin are not compared by value.
        for index in source.cells {
          let column = Int(self.buffer.cells[index].column)
          if source.change != .readDeletion { counts[column] += 1 }
          cellOfColumn[column] = -1
        }
        try row.send(to: &writer)
      }
      for record in self.omitted {
        guard let id = record.recordID else { continue }
        row.begin(fieldCount: 4 + self.table.columns.count)
        row.value(id.utf8)
        row.time(record.stamp)
        row.value(false)
        row.value(record.kind.rawValue.utf8)
        for _ in self.table.columns { row.null() }
        try row.send(to: &writer)
      }
    }
    let images = self.buffer.rows.count { $0.change != .readDeletion }
    return self.table.columns.indices.filter { place in
      let isWhole = counts[self.table.columns[place]] == images
      if !isWhole, counts[self.table.columns[place]] > 0 { self.absent.insert(place) }
      return isWhole
    }
  }

  private func inTransaction(_ settings: String = "", _ body: () throws -> Void) throws {
    do {
      try self.connection.execute("\(self.connection.beginStatement)\(settings)")
      try body()
      try self.connection.execute("COMMIT")
    } catch {
      // The error that ended the body is thrown; if the rollback fails too, the connection is closed.
      if self.connection.isConnected { try? self.connection.execute("ROLLBACK") }
      guard let failure = error as? PostgresError, failure.sqlState == SQLState.undefinedTable
      else { throw error }
      throw PostgresError(
        .configuration,
        "\(failure.message); verify needs a session of its own: if url leads to a pooler in "
          + "transaction mode, connect to the server itself", sqlState: failure.sqlState)
    }
  }

  // MARK: Findings

  /// The findings, with some IDs of each kind.
  package func findings(idLimit: Int) throws(PostgresError) -> CopyFindings {
    var findings = CopyFindings()
    findings.sampled = self.sampled
    findings.received = self.receivedCount
    findings.omissions = self.omissions
    let total = try self.connection.query(VerificationStatements.total)
    findings.total =
      Int(total.number(0, 0) ?? 0) + self.unnamed.values.reduce(0, +)
    for (kind, count) in self.unnamed { findings.add(count, kind: kind) }
    let outcomes = try self.connection.query(VerificationStatements.outcomes)
    for row in 0..<outcomes.rowCount {
      guard let count = outcomes.number(row, 1).map(Int.init) else { continue }
      findings.add(count, kind: outcomes[row, 0] ?? "")
    }
    let records = try self.connection.query(VerificationStatements.records(limit: idLimit))
    for row in 0..<records.rowCount {
      findings.records[records[row, 0] ?? "", default: []].append(records[row, 1] ?? "")
    }
    let fields = try self.connection.query(VerificationStatements.fields(limit: idLimit))
    for row in 0..<fields.rowCount {
      guard let place = fields.number(row, 0).map(Int.init),
        self.table.columns.indices.contains(place)
      else { continue }
      let path = self.path(place)
      if findings.fields.last?.field != path {
        findings.fields.append(
          CopyFindings.Field(
            field: path, count: fields.number(row, 1).map(Int.init) ?? 0, records: []))
      }
      findings.fields[findings.fields.count - 1].records.append(fields[row, 2] ?? "")
    }
    findings.notComparable =
      self.table.leftOut
      + self.absent.sorted().map {
        CopyFindings.LeftOut(field: self.path($0), reason: "not read of every record")
      }
    try self.connection.checkAnswers()
    return findings
  }

  private func path(_ place: Int) -> String {
    self.table.tables.dataColumns[self.table.columns[place]].path
  }
}
