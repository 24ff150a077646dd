import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline

/// What sinks are made with for a run.
struct SinkContext {
  var configuration: PipelineConfiguration
  var org: String
  var options: RunOptions
  /// This process, as stores that others may use know it.
  var owner: RunOwner
  /// How long to wait for something that does not answer.
  var retry: RetrySchedule
  var logger: Logger
  var log: RunLog
  var interruption: Interruption
  var clock: ProcessClock
}

/// The process of a run or command.
struct RunOwner: Sendable {
  /// Host and state directory.
  var place: String
  /// Identity of the state directory.
  var identity: String
  var processID: Int32
}

/// A sink during a run. Calls come in the order of the declarations, on one thread.
protocol RunSink: AnyObject {
  var name: String { get }

  /// Reads what earlier runs left. Changes nothing.
  ///
  /// - Parameter state: of the last checkpoint; nil when that does not know the sink.
  /// - Returns: faults of the output that the user has accepted, one sentence each.
  func survey(from state: SinkState?) throws -> [String]

  /// - Throws: `RunFailure` when a pipeline that has never run would write among the output of
  ///   another.
  func checkIsNew() throws

  func connect() throws

  /// The last event of a topic that the output has, by what is known beside the checkpoint.
  func lastExported(ofTopic topic: String) -> ExportedEvent?

  /// Brings what an earlier run left into line with the checkpoint. Not before it is certain that
  /// no newer checkpoint knows the output.
  func recover() throws

  /// How rows and positions become durable.
  var store: SinkStore { get }

  /// What this run has written.
  var output: SinkOutput { get }

  /// The sink's entry in the report of a run.
  func reportEntry(_ statistics: RunStatistics) -> RunReport.Sink

  /// Called after a run, whatever its result.
  func close()
}

extension RunSink {
  func survey(from state: SinkState?) throws -> [String] { [] }
  func checkIsNew() throws {}
  func connect() throws {}
  func lastExported(ofTopic topic: String) -> ExportedEvent? { nil }
  func recover() throws {}
  func close() {}
}

enum SinkStore {
  /// The checkpoint holds state and position.
  case checkpointed(any CheckpointedSink)
  /// The sink does.
  case ownPosition(any PositionKeepingSink)
}

/// What a sink that keeps its position does to agree with the others on where a run begins.
protocol PositionKeepingSink {
  /// - Parameter isKnown: the checkpoint knows that there is a position.
  /// - Returns: nil when none is stored.
  func storedPositions(isKnown: Bool) throws -> [String: TopicPosition]?

  /// The newest epoch that rows of the topics have; nil without rows.
  func newestEpoch(ofTopics topics: [String]) throws -> Int?

  /// For the journal, when the position was taken over from another run.
  var takeover: (old: JSONValue, new: JSONValue)? { get }

  /// Stores the first positions.
  func begin(at positions: [String: TopicPosition]) throws

  /// Records can be read into it.
  var takesReads: Bool { get }

  /// Its first run was to read all records.
  var beganWithReads: Bool { get }

  /// What the checkpoint holds of the sink.
  var checkpointState: SinkState { get }

  /// Rows and position become durable in it together.
  var durable: any Store { get }
}

/// The place of an event in the output of an earlier run.
struct ExportedEvent: Equatable {
  var epoch: Int
  var ordinal: Int64
  /// Hexadecimal.
  var replayID: String
}

/// Counts for the progress line.
struct SinkOutput: Equatable {
  /// Those of unfinished files included.
  var byteCount = 0
  var fileCount = 0
}
