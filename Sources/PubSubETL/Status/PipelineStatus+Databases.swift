internal import Bytes
internal import Checkpoint
import JSON
import Pipeline
import PostgresClient
import PostgresSink

extension PipelineStatus {
  /// What the database of a sink says.
  struct Database {
    var name: String
    /// SQL name.
    var schema: String
    /// The checkpoint does not know it yet.
    var isNew = false
    /// Nil when the database has no position of the sink, or did not answer.
    var state: SinkState?
    var tables: [TableFreshness] = []
    /// What somebody has done to the tables.
    var findings: [TableFinding] = []
    /// Why the database could not be asked.
    var failure: RunFailure?
  }

  /// Asks the databases, each once; one that does not answer keeps none of the others back.
  mutating func readDatabases(
    _ configuration: PipelineConfiguration, _ document: CheckpointDocument?
  ) {
    for settings in configuration.postgresSinks {
      var database = Database(
        name: settings.name, schema: settings.sink.schema,
        isNew: document != nil && document?.sinks[settings.name] == nil)
      do {
        let stored = try StoredPositions(
          pipeline: configuration.name, sink: settings.name, settings.sink)
        database.state = try stored.read()
        database.tables = try stored.freshness()
        database.findings = try stored.survey(feeder: configuration.feeder(settings))
      } catch {
        database.failure = RunFailure(error)
      }
      self.databases.append(database)
    }
    guard configuration.fileSinks.isEmpty else { return }
    // Without files the checkpoint is but a copy, which another host or a lost directory lacks.
    let states = self.databases.compactMap(\.state)
    self.org = self.org ?? states.first?.org
    self.savedAt = (states.map(\.committedAt) + [self.savedAt].compactMap { $0 }).max()
    for index in self.topics.indices {
      let stored = states.compactMap { $0.positions[self.topics[index].name] }
      let behind = stored.min { ($0.epoch, $0.nextOrdinal) < ($1.epoch, $1.nextOrdinal) }
      self.topics[index].position = behind ?? self.topics[index].position
    }
  }

  mutating func judgeDatabases() {
    for database in self.databases {
      if let failure = database.failure {
        self.add(
          failure.exitCode, failure.reason,
          "sink '\(database.name)': \(failure.message); status reads the database too: see that it "
            + "runs and that the sink's url, role and password are right")
      } else if database.state == nil, self.savedAt != nil, !database.isNew {
        self.add(
          .data, "lost_state",
          "the database of sink '\(database.name)' has no position of this pipeline, but had one "
            + "before: put back '_etl_checkpoint', or begin a new epoch with 'run --accept-reset'")
      }
      for finding in database.findings {
        // What the next run puts right is not right now.
        let failure = RunFailure(
          PostgresError(finding.disposition ?? .lostTable, finding.message))
        self.add(
          failure.exitCode, finding.disposition == nil ? "damaged_tables" : failure.reason,
          "sink '\(database.name)': \(failure.message)")
      }
    }
  }

  // MARK: Text

  func lines(_ database: Database) -> [String] {
    if database.failure != nil { return ["not known: the database could not be asked"] }
    guard let state = database.state else {
      return [database.isNew ? "not in the checkpoint yet" : "no position stored"]
    }
    var lines = ["last commit \(self.moment(state.committedAt))"]
    if let through = state.completeThrough {
      lines.append("complete through \(UTCTime.timestamp(milliseconds: through))")
    }
    lines.append(Self.lease(state))
    for (topic, position) in state.positions.sorted(by: { $0.key < $1.key }) {
      lines.append("\(topic): \(Self.lines(position).joined(separator: ", "))")
    }
    for table in database.tables {
      lines.append("\(table.table): \(Self.summary(table))")
    }
    return lines
  }

  /// How far and how whole a table is. What is complete and has not changed is not behind.
  static func summary(_ table: TableFreshness) -> String {
    func time(_ milliseconds: Int64) -> String { UTCTime.timestamp(milliseconds: milliseconds) }
    var parts: [String] = []
    if let stale = table.stale, let partial = table.partial {
      parts.append("\(ProgressLine.grouped(stale)) records stale")
      parts.append("\(ProgressLine.grouped(partial)) partial")
    }
    parts.append(
      table.completeThrough.map { "complete through \(time($0))" }
        ?? "how far it is complete is not known yet")
    if let change = table.lastChange { parts.append("no change since \(time(change))") }
    if table.holes > 0 { parts.append("holes in its stream: \(table.holes)") }
    return parts.joined(separator: ", ")
  }

  /// Who ran the sink last, and whether it still does.
  static func lease(_ state: SinkState) -> String {
    "run \(state.fence) by \(state.owner), "
      + (state.isLeased ? "its lease holds until " : "its lease ended ")
      + UTCTime.timestamp(milliseconds: state.leaseUntil)
  }

  // MARK: JSON

  func json(_ database: Database) -> JSONValue {
    let state = database.state
    return [
      "name": .string(database.name), "type": "postgres", "schema": .string(database.schema),
      "new": .boolean(database.isNew),
      "error": Self.text(database.failure?.message),
      "positions": Self.json(state?.positions ?? [:]),
      "org": Self.text(state?.org),
      "owner": Self.text(state?.owner),
      "fence": state.map { .integer($0.fence) } ?? nil,
      "lease_until": Self.time(state?.leaseUntil),
      "leased": state.map { .boolean($0.isLeased) } ?? nil,
      "committed_at": Self.time(state?.committedAt),
      "complete_through": Self.time(state?.completeThrough),
      "tables": .array(
        database.tables.map { table -> JSONValue in
          [
            "table": .string(table.table), "entity": .string(table.entity),
            "complete_through": Self.time(table.completeThrough),
            "last_change": Self.time(table.lastChange),
            "topics": .array(table.topics.map { .string($0) }),
            "stale": table.stale.map { .integer($0) } ?? nil,
            "partial": table.partial.map { .integer($0) } ?? nil,
            "holes": .integer(table.holes),
          ]
        }),
    ]
  }

  static func json(_ positions: [String: TopicPosition]) -> JSONValue {
    JSONValue(
      .object(
        positions.sorted { $0.key < $1.key }.map { topic, position in
          JSONMember(topic, Self.json(position))
        }))
  }
}
