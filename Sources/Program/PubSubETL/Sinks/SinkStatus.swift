internal import Checkpoint
import JSON
import Pipeline

/// How a sink stands, for `status`.
struct SinkStatus {
  var name: String
  /// The pipeline file does not have it any more.
  var isRemoved = false
  /// Something was exported, as far as the sink can tell without the checkpoint.
  var hasOutput = false
  /// Newest commit time in the output, by topic.
  var newestCommitTimes: [String: String] = [:]
  /// Where the sink's own position is, if it keeps one.
  var ownPosition: OwnPosition?
  /// Who ran the sink last, and whether it still does; nil if the sink does not know.
  var lease: String?
  /// The lease holds.
  var isLeased = false
  var problems: [PipelineStatus.Problem] = []
  /// Remarks that are not problems.
  var remark: String?
  /// The text after the sink's name.
  var summary: String
  /// Lines below it.
  var lines: [String] = []
  var json: JSONValue
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
  /// The problem that it has none if the pipeline has stored something before; nil if that is none.
  var problemIfLost: PipelineStatus.Problem?
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
  /// Milliseconds since 1970.
  var now: Int64
}
