internal import Checkpoint
import JSON
import Pipeline

/// How a sink stands, for `status`.
protocol SinkStatus {
  var name: String { get }

  /// The pipeline file does not have it any more.
  var isRemoved: Bool { get }

  /// Something was exported, as far as the sink can tell without the checkpoint.
  var hasOutput: Bool { get }

  /// Newest commit time in the output, by topic.
  var newestCommitTimes: [String: String] { get }

  /// Where the sink's own position is, if it keeps one.
  var ownPosition: OwnPosition? { get }

  /// The problems.
  ///
  /// - Parameter isCommitted: the pipeline has stored something before.
  func problems(isCommitted: Bool) -> [PipelineStatus.Problem]

  /// Remarks that are not problems.
  var remark: String? { get }

  /// The text after the sink's name.
  var summary: String { get }

  /// Lines below it.
  func lines(_ status: PipelineStatus) -> [String]

  var json: JSONValue { get }
}

extension SinkStatus {
  var isRemoved: Bool { false }
  var hasOutput: Bool { false }
  var newestCommitTimes: [String: String] { [:] }
  var ownPosition: OwnPosition? { nil }
  var remark: String? { nil }
}

/// What the store of a sink that keeps its position says.
struct OwnPosition {
  struct Stored {
    var org: String
    /// Milliseconds since 1970.
    var committedAt: Int64
    var positions: [String: TopicPosition]
  }

  /// The store, for messages: `the database of sink 'warehouse'`.
  var place: String
  /// Nil when it has none, or did not answer.
  var stored: Stored?
  /// The store did not answer.
  var isUnknown: Bool
}

/// What a sink's status is read with.
struct SinkStatusReading {
  var configuration: PipelineConfiguration
  /// Nil without one.
  var checkpoint: CheckpointDocument?
  /// Stored positions, by topic.
  var positions: [String: TopicPosition]
  /// Every finished file is to be read.
  var verifies: Bool
}
