import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline
import PostgresClient
import PostgresSink

extension PostgresSettings {
  /// Connects, and waits for a database that is not available.
  func open(_ context: SinkContext) throws -> PostgresSink {
    var configuration = self.sink(of: context.configuration)
    configuration.connection.clock = context.clock
    configuration.retry = context.retry
    let (name, logger, log) = (self.name, context.logger, context.log)
    let interruption = context.interruption
    let givesUp = { interruption.hasLasted(RunnerConfiguration.stopPatience) }
    var isThere = true
    let sink = try context.naming(name) {
      try PostgresSession.connecting(
        context.retry, clock: context.clock, givesUp: givesUp,
        onRetry: {
          isThere = false
          log.retrying(sink: name, $0, code: $1, delay: $2)
        }
      ) {
        try PostgresSink(
          name: name, configuration: configuration, pipeline: context.configuration.name,
          org: context.org, topics: context.configuration.source.feedingTopics,
          owner: LeaseOwner(context.owner), takesOver: context.options.recovery.takeOver,
          acceptsMissing: context.options.recovery.acceptMissing)
      }
    }
    if !isThere { log.recovered(sink: name) }
    sink.session.givesUp = givesUp
    sink.onNotice = { logger.notice("sink '\(name)': \($0)") }
    sink.onRepair = { logger.warning("sink '\(name)': \($0)") }
    sink.session.onRetry = { log.retrying(sink: name, $0, code: $1, delay: $2) }
    sink.session.onRecovery = { log.recovered(sink: name) }
    return sink
  }
}

extension SinkContext {
  /// Adds the sink's name to a failure before the first event.
  fileprivate func naming<Value>(_ sink: String, _ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as PostgresError {
      var failure = RunFailure(error)
      failure.message = "sink '\(sink)': \(failure.message)"
      if self.interruption.isAsked, failure.exitCode == .unavailable {
        failure.message += "; a signal stopped the run while it waited for the database"
      }
      throw failure
    }
  }
}

/// A postgres sink during a run.
extension PostgresSink: PositionKeepingSink {
  func storedPositions(
    isKnown: Bool, _ context: SinkContext
  ) throws -> [String: TopicPosition]? {
    try context.naming(self.name) { try self.open(isKnown: isKnown) }
  }

  func takeover(by owner: RunOwner) -> (old: JSONValue, new: JSONValue)? {
    self.formerLease.map { former in
      (
        old: [
          "sink": .string(self.name), "owner": .string(former.owner),
          "fence": .integer(former.fence),
        ],
        new: [
          "sink": .string(self.name), "owner": .string(LeaseOwner(owner).text),
          "fence": .integer(former.fence + 1),
        ]
      )
    }
  }

  func begin(at positions: [String: TopicPosition], _ context: SinkContext) throws {
    // What it is to have from the start, it has to know before anything else of it is stored.
    try context.naming(self.name) {
      try self.noteFirstReads()
      try self.open(creating: positions)
    }
  }

  func close(adding run: RunRecord?) -> String? { self.close(adding: run.map { RunRow($0) }) }

  var checkpointState: SinkState { SinkDatabases.documentState(schema: self.configuration.schema) }
}

extension PostgresSink: MeasuredSink {
  func count(in entry: inout RunReport.Sink) {
    entry.target = self.configuration.schema
    entry.rows = Int64(self.committedRowCount)
    entry.rowsRead = Int64(self.committedReadCount)
    entry.rowsChanged = Int64(self.changedReadCount)
    entry.counted = .rows(place: "in PostgreSQL")
  }
}

extension LeaseOwner {
  init(_ owner: RunOwner) {
    self.init(place: owner.place, identity: owner.identity, processID: owner.processID)
  }
}

extension RunRow {
  fileprivate init(_ record: RunRecord) {
    let counts = record.counts
    self.init(
      id: record.beginning.id.text, version: record.beginning.version,
      command: record.beginning.command.rawValue, beganAt: record.beginning.beganAt,
      endedAt: record.endedAt, exitCode: record.exitCode, reason: record.reason,
      message: record.message,
      counts: [
        "events": counts.events, "rows": counts.rows, "delivered": counts.delivered,
        "records_read": counts.recordsRead, "dead_letters": counts.deadLetters,
        "gaps": counts.gaps, "holes": counts.holes, "retries": record.retryCount,
        "api_calls": counts.apiCalls,
      ], lag: record.lag)
  }
}
