internal import Bytes
internal import Clocks
internal import JSON
internal import Pipeline
internal import PostgresClient

/// The tables that each topic of a sink feeds, with the newest change of each. Stored with the
/// topic's position, where `_freshness` reads it.
struct FedTables {
  private let pipeline: String
  private let sink: String
  private let configuration: PostgresSinkConfiguration
  private let bookkeeping: Bookkeeping
  /// By topic and table, milliseconds since 1970; nil before the first.
  private var newest: [String: [String: Int64?]] = [:]

  private static let member = "tables"

  init(pipeline: String, sink: String, _ configuration: PostgresSinkConfiguration) {
    self.pipeline = pipeline
    self.sink = sink
    self.configuration = configuration
    self.bookkeeping = Bookkeeping(schema: configuration.schema)
  }

  /// Plausible commit times: from year 1 to `latest`, or to one minute from the time of `clock`.
  static func plausibleCommits(
    latest: Int64? = nil, clock: ProcessClock
  ) -> ClosedRange<Int64> {
    let first = CommitTime.range.lowerBound
    return first...max(first, latest ?? clock.wallTime + 60_000)
  }

  /// Reads what is stored with the positions. For topics stored by an earlier version, finds the
  /// tables by their names and content.
  mutating func read(over connection: PostgresConnection) throws(PostgresError) {
    let topics = try connection.query(
      """
      SELECT t.key, t.value ? '\(Self.member)' FROM \(self.bookkeeping.qualified("_etl_checkpoint")) \
      AS c, jsonb_each(c.topics) AS t WHERE c.pipeline = $1 AND c.sink = $2
      """, [self.pipeline, self.sink])
    let known = try connection.query(
      """
      SELECT t.key, e.key, e.value FROM \(self.bookkeeping.qualified("_etl_checkpoint")) AS c, \
      jsonb_each(c.topics) AS t, jsonb_each_text(CASE jsonb_typeof(t.value -> '\(Self.member)') \
      WHEN 'object' THEN t.value -> '\(Self.member)' END) AS e \
      WHERE c.pipeline = $1 AND c.sink = $2
      """, [self.pipeline, self.sink])
    self.newest = [:]
    for row in 0..<known.rowCount {
      guard let topic = known[row, 0], let table = known[row, 1] else { continue }
      self.newest[topic, default: [:]][table] = .some(known.number(row, 2))
    }
    for row in 0..<topics.rowCount where topics[row, 1] == "f" {
      guard let topic = topics[row, 0] else { continue }
      self.add(try self.tables(fedBy: topic, over: connection), topic: topic)
    }
  }

  private func tables(
    fedBy topic: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let isChannel = TopicName.isChannel(topic)
    let stored = try connection.query(
      """
      SELECT table_name, entity, kind FROM \(self.bookkeeping.qualified("_etl_table")) \
      WHERE to_regclass($1 || '.' || quote_ident(table_name)) IS NOT NULL
      """, [SQLIdentifier.quoted(self.configuration.schema)])
    var names: [String: [String]] = [:]
    for row in 0..<stored.rowCount {
      guard let name = stored[row, 0], let entity = stored[row, 1],
        let kind = stored[row, 2].flatMap({ TableDefinition.Kind(rawValue: $0) }),
        self.configuration.mode.tableKinds.contains(kind),
        isChannel || entity == TopicName.entity(topic),
        try TableMapping.tableName(of: entity, kind, self.configuration) == name
      else { continue }
      if isChannel {
        // Only the history has this information.
        guard kind == .history else { continue }
        let isFed = try connection.query(
          "SELECT EXISTS (SELECT FROM \(self.bookkeeping.qualified(name)) WHERE _topic = $1)",
          [topic])
        guard isFed[0, 0] == "t" else { continue }
        if self.configuration.mode == .both {
          names[entity, default: []].append(
            try TableMapping.tableName(of: entity, .current, self.configuration))
        }
      }
      names[entity, default: []].append(name)
    }
    return names.values.flatMap { $0 }
  }

  /// Adds tables that receive the topic's rows.
  mutating func add(_ tables: [String], topic: String) {
    for table in tables where self.newest[topic]?[table] == nil {
      self.newest[topic, default: [:]][table] = .some(nil)
    }
  }

  /// Whether a table has rows of changes of a topic.
  func holdsChanges(_ table: String, of topic: String) -> Bool {
    (self.newest[topic]?[table] ?? nil) != nil
  }

  mutating func note(commit time: Int64, topic: String, tables: LayoutTables) {
    for table in tables.names {
      let known = self.newest[topic]?[table] ?? nil
      self.newest[topic, default: [:]][table] = max(known ?? time, time)
    }
  }

  /// The position with the tables of its topic added.
  func adding(to position: JSONValue, topic: String) -> JSONValue {
    guard let tables = self.newest[topic], let members = position.members else { return position }
    let times = tables.sorted { $0.key < $1.key }.map { table, time in
      JSONMember(table, time.map { .integer($0) } ?? nil)
    }
    return JSONValue(.object(members + [JSONMember(Self.member, JSONValue(.object(times)))]))
  }

  /// The time through which all topics are complete; nil if it is unknown for any.
  static func completeThrough(
    _ topics: [String: JSONValue], clock: ProcessClock
  ) -> Int64? {
    var earliest: Int64?
    for position in topics.values {
      guard let through = position["complete_through_ms"]?.integer,
        Self.plausibleCommits(clock: clock).contains(through)
      else { return nil }
      earliest = min(earliest ?? through, through)
    }
    return earliest
  }
}
