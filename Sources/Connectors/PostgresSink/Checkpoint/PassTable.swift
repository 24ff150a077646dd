internal import Clocks
internal import Pipeline
internal import PostgresClient

/// How far the records of each object have been read, by sink: `_etl_snapshot`.
struct PassTable {
  private let pipeline: String
  private let sink: String
  private let table: String

  /// The state of an object's passes.
  struct Entry {
    /// The number of the last pass; 0 if none has begun.
    var number = 0
    /// Nil if no pass has begun, or if it has to start again.
    var pass: ReadPass?
    /// The newest `SystemModstamp` of any record read, milliseconds since 1970.
    var newestStamp: Int64?
    /// Milliseconds since 1970 by the database's clock; nil before the first pass is complete.
    var finishedAt: Int64?
  }

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.pipeline = pipeline
    self.sink = sink
    self.table = bookkeeping.qualified("_etl_snapshot")
  }

  /// Reads the entries by `ReadPass.key`.
  func read(
    _ clock: DatabaseClock, over connection: PostgresConnection
  ) throws(PostgresError) -> [String: Entry] {
    func milliseconds(_ column: String) -> String {
      "floor(extract(epoch FROM \(column)) * 1000)::bigint"
    }
    let result = try connection.query(
      """
      SELECT entity, number, state, job, locator, page_row, rows, total, \
      \(milliseconds("requested_at")), \(milliseconds("newest_stamp")), \
      \(milliseconds("finished_at")), \(milliseconds("begun_at")) FROM \(self.table) WHERE pipeline = $1 AND sink = $2
      """, [self.pipeline, self.sink])
    var entries: [String: Entry] = [:]
    for row in 0..<result.rowCount {
      func number(_ column: Int) -> Int64? { result.number(row, column) }
      guard let key = result[row, 0] else { continue }
      let words = key.split(separator: " ", maxSplits: 1).map(String.init)
      guard let entity = words.first else { continue }
      var entry = Entry(newestStamp: number(9), finishedAt: number(10))
      if let count = number(1), count > 0,
        let state = result[row, 2].flatMap({ ReadPass.State(rawValue: $0) })
      {
        var pass = ReadPass(
          entity: entity, part: words.count > 1 ? words[1] : nil, number: Int(count), state: state)
        pass.job = result[row, 3]
        pass.locator = result[row, 4]
        pass.row = Int(number(5) ?? 0)
        pass.rowCount = Int(number(6) ?? 0)
        pass.total = number(7).map { Int($0) }
        pass.requestedAt = number(8).map { clock.instant(of: $0) }
        pass.begunAt = number(11).map { clock.instant(of: $0) }
        // An implausible pass counts as an object that was never read.
        if pass.isPlausible {
          entry.number = pass.number
          entry.pass = pass
        }
      }
      entries[key] = entry
    }
    return entries
  }

  /// Stores the progress of a pass, in the open transaction.
  func store(
    _ pass: ReadPass, newestStamp: Int64?, _ clock: DatabaseClock,
    over connection: PostgresConnection
  ) throws(PostgresError) {
    func time(_ parameter: Int) -> String {
      "to_timestamp($\(parameter)::double precision / 1000)"
    }
    try connection.query(
      """
      INSERT INTO \(self.table) AS s (pipeline, sink, entity, number, state, begun_at, job, locator, \
      page_row, rows, total, requested_at, newest_stamp, finished_at) \
      VALUES ($1, $2, $3, $4, $5, now(), $6, $7, $8, $9, $10, \(time(11)), \(time(12)), \
      CASE WHEN $5 = 'complete' THEN now() END) \
      ON CONFLICT (pipeline, sink, entity) DO UPDATE SET number = excluded.number, \
      state = excluded.state, job = excluded.job, locator = excluded.locator, \
      page_row = excluded.page_row, rows = excluded.rows, total = excluded.total, \
      requested_at = excluded.requested_at, \
      newest_stamp = greatest(s.newest_stamp, excluded.newest_stamp), \
      begun_at = CASE WHEN s.number = excluded.number THEN s.begun_at ELSE now() END, \
      finished_at = coalesce(excluded.finished_at, s.finished_at)
      """,
      [
        self.pipeline, self.sink, pass.key, "\(pass.number)", pass.state.rawValue, pass.job,
        pass.locator, "\(pass.row)", "\(pass.rowCount)", pass.total.map { "\($0)" },
        pass.requestedAt.map { "\(clock.milliseconds(at: $0))" }, newestStamp.map { "\($0)" },
      ])
  }

  /// Forgets the passes over columns of an object that rows lack. Others stay: nothing else says
  /// when changes and fields without events were last read.
  ///
  /// - Parameter key: of a pass to keep.
  func forgetParts(
    of entity: String, but key: String?, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      DELETE FROM \(self.table) WHERE pipeline = $1 AND sink = $2 \
      AND starts_with(entity, $3) AND entity IS DISTINCT FROM $4
      """, [self.pipeline, self.sink, "\(entity) \(ReadPass.fillingPrefix)", key])
  }

  /// Forgets the passes over fields without events that the pipeline no longer has.
  ///
  /// - Parameter keys: of the passes to keep.
  func forgetRefreshes(
    but keys: Set<String>, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      DELETE FROM \(self.table) WHERE pipeline = $1 AND sink = $2 \
      AND strpos(entity, $3) > 0 AND entity <> ALL ($4::text[])
      """,
      [self.pipeline, self.sink, " \(Refresh.partPrefix)", SQLArray.literal(keys.sorted())])
  }

  /// SQL: when the last pass of a key began.
  func begunAt(_ key: String) -> String {
    let names = [self.pipeline, self.sink, key].map { SQLIdentifier.literal($0) }
    return "(SELECT begun_at FROM \(self.table) WHERE (pipeline, sink, entity) = "
      + "(\(names.joined(separator: ", "))))"
  }

  /// Notes that all records of an object have to be read for the first time. Until then nothing
  /// about the object is complete, even before the pass has begun.
  func await(entity: String, over connection: PostgresConnection) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.table) AS s (pipeline, sink, entity, number, state, begun_at, page_row, rows) \
      VALUES ($1, $2, $3, 0, 'awaited', now(), 0, 0) ON CONFLICT (pipeline, sink, entity) \
      DO UPDATE SET state = 'awaited' WHERE s.number = 0
      """, [self.pipeline, self.sink, entity])
  }

  /// Notes the newest stamp of records that were read outside a pass, in the open transaction.
  func note(
    newestStamp: Int64? = nil, entity: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.table) AS s (pipeline, sink, entity, number, state, begun_at, page_row, \
      rows, newest_stamp) \
      VALUES ($1, $2, $3, 0, 'none', now(), 0, 0, to_timestamp($4::double precision / 1000)) \
      ON CONFLICT (pipeline, sink, entity) DO UPDATE SET \
      newest_stamp = greatest(s.newest_stamp, excluded.newest_stamp)
      """, [self.pipeline, self.sink, entity, newestStamp.map { "\($0)" }])
  }
}

/// One reading of the database's clock.
struct DatabaseClock {
  /// Milliseconds since 1970.
  private let reading: Int64
  private let readAt: ContinuousClock.Instant

  init(
    over connection: PostgresConnection, now: () -> ContinuousClock.Instant
  ) throws(PostgresError) {
    let result = try connection.query(
      "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    self.reading = result.number(0, 0) ?? 0
    self.readAt = now()
  }

  /// Milliseconds since 1970.
  func milliseconds(at instant: ContinuousClock.Instant) -> Int64 {
    let (seconds, attoseconds) = (instant - self.readAt).components
    return self.reading + seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  func instant(of milliseconds: Int64) -> ContinuousClock.Instant {
    self.readAt + .milliseconds(milliseconds - self.reading)
  }
}
