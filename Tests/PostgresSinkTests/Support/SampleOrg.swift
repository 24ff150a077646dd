import PostgresClient
import TestSupport

@testable import PostgresSink

/// Records of an org that change at random, and what of it reaches the history: events, gap events,
/// nothing, and reads.
struct SampleOrg {
  /// The values of a record since a time; nil while it is deleted.
  struct State {
    var since: Int64
    var values: [String: SampleEvent.Value]?
  }

  private var random: SplitMix
  /// Seconds since 1970.
  private(set) var now: Int64 = 1_000
  private var ordinal: Int64 = 0
  private var number: Int32 = 0
  /// By record ID, oldest first.
  private(set) var states: [String: [State]] = [:]
  /// By record ID, the time from which the history may know the record.
  private(set) var knownFrom: [String: Int64] = [:]
  /// By ordinal and field, the values before.
  private(set) var before: [String: String] = [:]

  init(seed: UInt64, records: Int) {
    self.random = SplitMix(seed: seed)
    for record in 1...records {
      self.states["\(record)"] = [
        State(since: 0, values: ["name": .text("0"), "order": .integer(0)])
      ]
    }
  }

  static func text(_ value: SampleEvent.Value?) -> String {
    switch value {
    case .text(let text): text
    case .integer(let integer): "\(integer)"
    default: "-"
    }
  }

  private mutating func chance(_ count: Int) -> Int {
    Int.random(in: 0..<count, using: &self.random)
  }

  /// One change or read of a record, and its rows.
  mutating func step(into tables: SampleTables, withDeletions: Bool) throws {
    self.now += Int64(1 + self.chance(120))
    let records = self.states.keys.sorted()
    let record = records[self.chance(records.count)]
    let last = self.states[record]?.last ?? State(since: 0)
    guard let values = last.values else { return try self.restore(record, tables) }
    switch self.chance(withDeletions ? 11 : 10) {
    case 0:
      // Salesforce does not say what has changed.
      _ = self.change(record, values)
      try tables.insert(
        SampleEvent(change: .gapUpdate, recordID: record, ordinal: self.ordinal, time: self.now))
    case 1:
      _ = self.change(record, values)
      try self.lose(record, tables)
    case 2, 3:
      var read = SampleRead(
        recordID: record, ordinal: self.ordinal + 1, stamp: last.since,
        readAt: self.now + Int64(self.chance(200)))
      self.now = read.readAt
      for column in SampleTables.columns { read.values[column.name] = values[column.name] ?? .null }
      self.knownFrom[record] = min(self.knownFrom[record] ?? .max, last.since)
      try tables.insert(read)
    case 10:
      self.ordinal += 1
      self.states[record]?.append(State(since: self.now, values: nil))
      try tables.insert(
        SampleEvent(
          change: self.chance(3) == 0 ? .gapDelete : .delete, recordID: record,
          ordinal: self.ordinal, time: self.now))
    default:
      let changed = self.change(record, values)
      try tables.insert(
        SampleEvent(
          change: .update, recordID: record, ordinal: self.ordinal, time: self.now, values: changed)
      )
    }
  }

  private mutating func change(
    _ record: String, _ values: [String: SampleEvent.Value]
  ) -> [String: SampleEvent.Value] {
    self.number += 1
    var changed: [String: SampleEvent.Value] = [:]
    let isCleared = self.chance(5) == 0
    if Bool.random(using: &self.random) {
      changed["name"] = isCleared ? .null : .text("n\(self.number)")
    }
    if changed.isEmpty || Bool.random(using: &self.random) {
      changed["order"] = isCleared ? .null : .integer(self.number)
    }
    self.ordinal += 1
    for field in changed.keys {
      self.before["\(self.ordinal)|\(field)"] = Self.text(values[field])
    }
    self.states[record]?.append(
      State(since: self.now, values: values.merging(changed) { $1 }))
    return changed
  }

  /// A dead letter of the record, an event that stands for changes of any, or one that nobody could
  /// decode, so that it has neither record nor place.
  private func lose(_ record: String, _ tables: SampleTables) throws {
    let (kind, lost): (String, String?) =
      switch self.ordinal % 6 {
      case 0, 2, 4: ("dead_letter", record)
      case 1, 3: ("overflow", "000000000000000AAA")
      default: ("dead_letter", nil)
      }
    try tables.connection.query(
      """
      INSERT INTO \(SQLIdentifier.quoted(SampleTables.schema))._etl_resync (entity, kind, record_id, \
      event_id, epoch, ordinal, commit_timestamp, noted_at) SELECT 'Thing', $1, $2, $3, \
      CASE WHEN $2 <> '' THEN 1 END, CASE WHEN $2 <> '' THEN $4::bigint END, \
      CASE WHEN $2 <> '' THEN to_timestamp($5) END, to_timestamp($5)
      """, [kind, lost, "lost-\(self.ordinal)", "\(self.ordinal)", "\(self.now)"])
  }

  private mutating func restore(_ record: String, _ tables: SampleTables) throws {
    let values = self.states[record]?.dropLast().last?.values ?? [:]
    self.ordinal += 1
    self.states[record]?.append(State(since: self.now, values: values))
    self.knownFrom[record] = min(self.knownFrom[record] ?? .max, self.now)
    try tables.insert(
      SampleEvent(
        change: .undelete, recordID: record, ordinal: self.ordinal, time: self.now, values: values))
  }

  /// The state of a record after the changes of that second.
  func state(of record: String, at time: Int64) -> State? {
    self.states[record]?.last { $0.since <= time }
  }
}

extension SampleTables {
  /// Tables whose columns are noted as complete since the beginning of time.
  static func complete(width: Int = SampleTables.columns.count) async throws -> SampleTables {
    let tables = try await SampleTables(width: width, takesReads: true)
    for column in tables.history.dataColumns {
      try tables.connection.query(
        """
        INSERT INTO \(SQLIdentifier.quoted(Self.schema))._etl_column \
        (table_name, column_name, path, since) VALUES ('thing_history', $1, $2, '-infinity')
        """, [column.name, column.path])
    }
    return tables
  }

  /// Puts an event into the history, which arrives when it is committed.
  func insert(_ event: SampleEvent, changed: [String]? = nil) throws {
    var buffer = RowBuffer(columnCount: self.history.dataColumns.count)
    buffer.append(event, columns: self.history.dataColumns)
    try HistoryTable(self.history).send(buffer, rows: 0..<1, over: self.connection)
    try self.connection.finishCopy()
    try self.connection.query(
      """
      UPDATE \(self.history.qualifiedName) SET _loaded_at = _commit_timestamp, \
      _transaction_key = 't' || _ordinal WHERE _event_id = $1
      """, [event.eventID])
    if let changed {
      try self.connection.query(
        "UPDATE \(self.history.qualifiedName) SET _changed_fields = $2 WHERE _event_id = $1",
        [event.eventID, SQLArray.literal(changed)])
    }
  }

  /// Puts a record that was read into the history.
  func insert(_ read: SampleRead) throws {
    var buffer = RowBuffer(columnCount: self.history.dataColumns.count)
    buffer.append(read, columns: self.history.dataColumns)
    try HistoryTable(self.history).copyReads(buffer, rows: [0], over: self.connection)
    try self.connection.query(
      """
      UPDATE \(self.history.qualifiedName) SET _loaded_at = _read_at \
      WHERE _read_at = to_timestamp($1)
      """, ["\(read.readAt)"])
  }
}
