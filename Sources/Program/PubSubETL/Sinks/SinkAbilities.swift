import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline

// What only some kinds of sinks can do, as the pipeline file configures them. Each protocol has one
// reason to exist, and a sink without it lacks the ability. `VerifyingSink`, `PlanningSink`,
// `RefoldingSink` and `RecallingSink` are in files of their own.

/// A sink that cannot share its output with another one.
protocol ExclusiveSink: ConfiguredSink {
  /// Why both cannot be in one pipeline: the member at fault, and a sentence; nil when they can.
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)?
}

/// A sink that cannot have the events of all topics together.
protocol TopicLimitedSink: ConfiguredSink {
  /// Why these topics cannot go to this sink together; nil when they can.
  func conflict(among topics: [SourceConfiguration.Topic]) -> String?
}

/// A sink whose memory grows with its commits.
protocol BulkSink: ConfiguredSink {
  /// The value of `commit.max_events` when the pipeline file sets none; the smallest of a pipeline's
  /// sinks counts.
  static var commitMaxEvents: Int { get }
}

/// A sink whose own members name columns.
protocol ColumnNamingSink: ConfiguredSink {
  /// Watches these columns, after the sink's stages; nil when the members name none.
  var columnWatcher: (any Transform)? { get }
}

/// A sink that logs in to a server.
protocol ConnectingSink: ConfiguredSink {
  /// Environment variables that hold secrets of such sinks.
  static var secretVariables: [String] { get }

  /// The passwords of a URL as such sinks read it; none of one that they do not understand.
  static func passwords(in url: String) -> [String]

  /// What its owner may not know of: connections that others can read. One sentence each, with the
  /// remedy.
  var securityWarnings: [String] { get }

  /// Connects; a line per thing that was found to work. Makes nothing. What it throws is reported
  /// with the sink's name before it.
  func checkConnection(_ configuration: PipelineConfiguration) throws -> [String]
}

/// A sink whose parts throw errors of their own.
protocol FailingSink: ConfiguredSink {
  /// The failure for an error of this kind of sink; nil for other errors.
  static func failure(_ error: any Error) -> RunFailure?
}

/// A sink whose output is on this machine.
protocol LocalSink: ConfiguredSink {
  /// Problems that would stop a run on this machine, found without a connection. Creates nothing.
  func localFailures() -> [RunFailure]

  /// The highest epoch of a topic in the output; 0 without one.
  func exportedEpoch(ofTopic topic: String, pipeline: String) throws -> Int
}

/// A sink that leaves output in progress when it is removed from the pipeline file.
protocol RemovableSink: ConfiguredSink {
  /// How a removed sink stands.
  ///
  /// - Parameter kept: of `CheckpointDocument.removedSinks`.
  /// - Returns: nil for a sink of another kind, or without anything to report.
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> SinkStatus?

  /// Finishes what removed sinks had in progress.
  ///
  /// - Parameter log: receives what could not be finished.
  /// - Returns: `removed_sinks` of the next checkpoint.
  static func finishRemoved(
    _ succession: SinkSuccession, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink]
}

/// A sink that writes rows in a form of its own.
protocol PreviewingSink: ConfiguredSink {
  /// Shows lines or rows as the sink would write them; without I/O.
  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview
}

/// A sink whose wrong records are read again by runs.
protocol RepairableSink: ConfiguredSink {
  /// It has a row for each record, as it is configured.
  var hasCurrentRows: Bool { get }

  /// Counts the rows that are wrong, which costs as much as there are of them.
  func incorrectRows(_ configuration: PipelineConfiguration) throws -> [IncorrectRows]
}

/// The wrong rows of an object's current table.
struct IncorrectRows: Sendable, Equatable {
  var object: String
  var staleCount: Int64
  var partialCount: Int64
  /// Those that are to be read again; nil if unknown.
  var waitingCount: Int64?
}
