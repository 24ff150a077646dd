import JSON
import Pipeline
import PostgresClient
import PostgresSink

/// `{"type": "postgres"}`: tables with the present state of each record and with every change.
struct PostgresSettings: ConfiguredSink, Equatable {
  static let type = "postgres"

  var common = SinkKeys(name: PostgresSettings.type)
  var sink = PostgresSinkConfiguration(connection: PostgresConnectionConfiguration(url: ""))

  /// The sink as a pipeline uses it.
  func sink(of pipeline: PipelineConfiguration) -> PostgresSinkConfiguration {
    var sink = self.sink
    let snapshot = pipeline.source.snapshot
    sink.polls = pipeline.source.polls
    sink.subsets = Set(pipeline.source.subset.keys)
    sink.refreshes = pipeline.source.refreshKeys
    if snapshot.mode != .never || pipeline.repair.mode == .auto || !sink.polls.isEmpty
      || !sink.refreshes.isEmpty
    {
      sink.reads = PostgresSinkConfiguration.Reads(visibilityWait: snapshot.visibilityWait)
    }
    sink.selectsChanges = !(pipeline.stages + self.stages).valueConditionNames.isEmpty
    return sink
  }

  var place: String { "postgres:\(self.sink.schema)" }

  var summary: String {
    "PostgreSQL, schema \(self.sink.schema), mode \(self.sink.mode.rawValue)"
  }

  func status(_ reading: SinkStatusReading) -> SinkStatus {
    PostgresStatus(self, reading).status(now: reading.now)
  }
}

extension PostgresSettings: BulkSink, ColumnNamingSink, RepairableSink, PreviewingSink {
  /// A transaction of a database costs more than a flush of a file, and the more changes of a
  /// record it holds the fewer rows it writes.
  static let commitMaxEvents = 20_000

  var columnWatcher: (any Transform)? {
    self.sink.columnTypes.isEmpty ? nil : ColumnTypeNames(self.sink)
  }

  var hasCurrentRows: Bool { self.sink.mode != .history }

  func incorrectRows(_ configuration: PipelineConfiguration) throws -> [IncorrectRows] {
    let table = try CheckpointTable(
      pipeline: configuration.name, sink: self.name, self.sink(of: configuration))
    return try table.freshness().compactMap { table in
      guard let stale = table.stale, let partial = table.partial else { return nil }
      return IncorrectRows(
        object: table.entity, staleCount: stale, partialCount: partial,
        waitingCount: table.waitingForRepair)
    }
  }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview {
    PostgresPreview(self.sink(of: configuration))
  }
}

extension PostgresSettings: ExclusiveSink, TopicLimitedSink {
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)? {
    guard let other = other as? Self, other.sink.sharesTables(self.sink) else { return nil }
    return (
      "schema",
      "sink '\(other.name)' writes to the same tables; give one of them another schema, or "
        + "other names in \"tables\""
    )
  }

  /// The channel of all change events sends those of an object's own topic, too.
  func conflict(among topics: [SourceConfiguration.Topic]) -> String? {
    guard topics.contains(where: { $0.name == TopicName.allChanges }),
      let twice = topics.first(where: { TopicName.hasChanges($0.name) && !$0.isChannel })
    else { return nil }
    return "\(TopicName.allChanges) includes the events of \(twice.name), so a database would have "
      + "each of them twice; remove one of the two topics"
  }
}

extension PostgresSettings: ConnectingSink {
  static let secretVariables = ["PGPASSWORD", "PGSSLPASSWORD"]

  static func passwords(in url: String) -> [String] {
    PostgresConnectionConfiguration.passwords(in: url)
  }

  var securityWarnings: [String] {
    guard let host = self.sink.connection.unprotectedHost else { return [] }
    return [
      "sink '\(self.name)': the connection to \(host) sets no sslmode, so it may be "
        + "unencrypted, and the server's certificate is not checked. Add sslmode=verify-full to "
        + "url (with sslrootcert=FILE for a private CA), or another sslmode that you accept, "
        + "such as sslmode=require"
    ]
  }
}

extension PostgresSettings: FailingSink {
  static func failure(_ error: any Error) -> RunFailure? {
    if let error = error as? LeaseError {
      return RunFailure(.alreadyRunning, error.description)
    }
    if let error = error as? OtherOrgError {
      return RunFailure(
        .otherOrg, "\(error.description). \(OrgChange.remedy)")
    }
    guard let error = error as? PostgresError else { return nil }
    let reason: EndReason =
      switch error.disposition {
      case .retry: .databaseUnavailable
      case .diskFull, .resources: .sinkIO
      case .refused: .databaseRefused
      case .configuration: .database
      case .contract: .contract
      case .lostTable: .lostTable
      case .rewound: .databaseRewound
      case .rejectedRow: .rejectedRow
      case .bug: .internal
      }
    return RunFailure(reason, error.message)
  }
}

extension PipelineConfiguration {
  /// Who feeds the tables of a sink.
  func feeder(_ sink: PostgresSettings) -> TableFeeder {
    TableFeeder(
      pipeline: self.name, sink: sink.name, topics: self.source.feedingTopics)
  }

  var postgresSinks: [PostgresSettings] { self.sinks.compactMap { $0 as? PostgresSettings } }
}
