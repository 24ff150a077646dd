import JSON
import Pipeline

/// The trace of one event through the stages to the sinks.
struct EventTrace {
  var topic: String
  /// Hexadecimal.
  var replayID: String
  var eventID: String
  var schemaID: String
  var ordinal: Int64
  /// Nil for an event that could not be decoded.
  var before: RowSnapshot?
  /// The changes by the pipeline's stages, up to the last one that the event reached.
  var steps: [StageStep] = []
  /// In the order of the pipeline file; those that the event did not reach are there as well.
  var sinks: [SinkOutcome]
  /// Why it could not be decoded, or not be processed by a stage of the pipeline; without values.
  var refusal: String?

  /// It would go to the dead letters, for one sink at least.
  var isDeadLetter: Bool { self.refusal != nil || self.sinks.contains { $0.refusal != nil } }
}

/// The rows of an event at one place.
struct RowSnapshot {
  /// Its columns tell which of them a stage has renamed.
  var layout: RecordLayout
  /// The first of them, as lines of files are, without hidden values.
  var rows: [JSONValue]
  /// With those that are not shown.
  var count: Int
  /// Names of columns whose values are hidden.
  var hidden: Set<String>

  var notShown: Int { self.count - self.rows.count }
}

/// The changes that one stage made to an event.
struct StageStep {
  enum Outcome {
    case unchanged
    case rows(RowSnapshot)
    /// Why it could not be processed; without values.
    case refused(String)
  }

  var kind: String
  /// Place among the stages of the pipeline file, or of its sink.
  var place: Int
  var outcome: Outcome
  /// Rows that the stage left out.
  var leftOut = 0
  /// Names of columns behind the stage whose values it has changed, and which are hidden.
  var hiddenChanges: Set<String> = []
}

/// The part of an event that one sink would get.
struct SinkOutcome {
  var name: String
  /// Rows that the stage `route` has sent here; nil without that stage, or when the event did not come so far.
  var routed: Int?
  /// The changes by the sink's own stages.
  var steps: [StageStep] = []
  /// The output it would write: lines, or rows of tables.
  var lines: [JSONValue] = []
  var linesNotShown = 0
  /// Why it would have refused the event; without values.
  var refusal: String?
}
