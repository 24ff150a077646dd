import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline
import PostgresClient
import PostgresSink

/// A postgres sink during a run.
final class PostgresRun: RunSink {
  private let settings: PostgresSettings
  private let context: SinkContext
  private var connected: PostgresSink?

  init(_ settings: PostgresSettings, _ context: SinkContext) {
    self.settings = settings
    self.context = context
  }

  var name: String { self.settings.name }

  private var sink: PostgresSink {
    guard let sink = self.connected else { preconditionFailure("used before it is connected") }
    return sink
  }

  func connect() throws {
    let (name, logger, log) = (self.name, self.context.logger, self.context.log)
    let interruption = self.context.interruption
    let givesUp = { interruption.hasLasted(RunnerConfiguration.stopPatience) }
    var isThere = true
    let sink = try self.naming {
      try PostgresSink.connecting(
        self.context.retry, clock: self.context.clock, givesUp: givesUp,
        onRetry: {
          isThere = false
          log.retrying(sink: name, $0, code: $1, delay: $2)
        }, self.makeSink)
    }
    if !isThere { log.recovered(sink: name) }
    sink.givesUp = givesUp
    sink.onNotice = { logger.notice("sink '\(name)': \($0)") }
    sink.onRepair = { logger.warning("sink '\(name)': \($0)") }
    sink.onRetry = { log.retrying(sink: name, $0, code: $1, delay: $2) }
    sink.onRecovery = { log.recovered(sink: name) }
    self.connected = sink
  }

  /// Adds the sink's name to a failure before the first event.
  private func naming<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as PostgresError {
      var failure = RunFailure(error)
      failure.message = "sink '\(self.name)': \(failure.message)"
      if self.context.interruption.isAsked, failure.exitCode == .unavailable {
        failure.message += "; a signal stopped the run while it waited for the database"
      }
      throw failure
    }
  }

  private func makeSink() throws -> PostgresSink {
    var configuration = self.settings.sink(of: self.context.configuration)
    configuration.retry = self.context.retry
    configuration.connection.clock = self.context.clock
    return try PostgresSink(
      name: self.name, configuration: configuration, pipeline: self.context.configuration.name,
      org: self.context.org, topics: self.context.configuration.source.topics.map(\.name),
      owner: LeaseOwner(self.context.owner), takesOver: self.context.options.recovery.takeOver,
      acceptsMissing: self.context.options.recovery.acceptMissing)
  }

  var store: SinkStore { .ownPosition(self) }

  var output: SinkOutput { SinkOutput() }

  func reportEntry(_ statistics: RunStatistics) -> RunReport.Sink {
    var entry = RunReport.Sink(
      name: self.name, type: PostgresSettings.type, target: self.settings.sink.schema)
    entry.rows = Int64(self.connected?.committedRowCount ?? 0)
    entry.rowsRead = Int64(self.connected?.committedReadCount ?? 0)
    entry.counted = .rows(place: "in PostgreSQL")
    return entry
  }

  func close() { self.connected?.close() }
}

extension PostgresRun: PositionKeepingSink {
  func storedPositions(isKnown: Bool) throws -> [String: TopicPosition]? {
    try self.naming { try self.sink.open(isKnown: isKnown) }
  }

  func newestEpoch(ofTopics topics: [String]) throws -> Int? {
    try self.sink.newestEpoch(ofTopics: topics)
  }

  var takeover: (old: JSONValue, new: JSONValue)? {
    self.sink.formerLease.map { former in
      (
        old: [
          "sink": .string(self.name), "owner": .string(former.owner),
          "fence": .integer(former.fence),
        ],
        new: [
          "sink": .string(self.name), "owner": .string(LeaseOwner(self.context.owner).text),
          "fence": .integer(former.fence + 1),
        ]
      )
    }
  }

  func begin(at positions: [String: TopicPosition]) throws {
    // What it is to have from the start, it has to know before anything else of it is stored.
    try self.naming {
      try self.sink.noteFirstReads()
      try self.sink.open(creating: positions)
    }
  }

  var takesReads: Bool { self.sink.takesReads }
  var beganWithReads: Bool { self.sink.beganWithReads }

  var checkpointState: SinkState { SinkDatabases.documentState(schema: self.settings.sink.schema) }

  var durable: any Store { self.sink }
}

extension LeaseOwner {
  init(_ owner: RunOwner) {
    self.init(place: owner.place, identity: owner.identity, processID: owner.processID)
  }
}
