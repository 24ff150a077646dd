import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline

/// A sink as its object in the pipeline file means it; a conforming type is everything that the
/// program knows of one kind of sink. Its `keys` are those but `type` and the ones that every sink has.
protocol ConfiguredSink: KeyedObject, Sendable {
  /// The value of `type` in the pipeline file.
  static var type: String { get }

  /// The sink in a sentence, for the schema of pipeline files.
  static var schemaDescription: String { get }

  /// The value of `commit.max_events` when the pipeline file sets none: a property of the kind, and
  /// the largest of a pipeline's sinks counts.
  static var commitMaxEvents: Int { get }

  /// Environment variables that hold secrets of such sinks.
  static var secretVariables: [String] { get }

  /// The passwords of a URL as such sinks read it; none of one that they do not understand.
  static func passwords(in url: String) -> [String]

  /// The failure for an error of this kind of sink; nil for other errors.
  static func failure(_ error: any Error) -> RunFailure?

  /// The sink's identity in checkpoints and reports, unique in the pipeline.
  var name: String { get set }

  /// Nil: a new sink beside an old checkpoint is an error.
  var start: SinkStart? { get set }

  /// Stages after those of the pipeline, for this sink only.
  var stages: [StageConfiguration] { get set }

  /// Watches columns that the sink's own members name, behind its stages; nil when they name none.
  var columnWatcher: (any Transform)? { get }

  /// Where rows go, as checkpoints and renamed sinks know it: two sinks with the same place share
  /// their output.
  var place: String { get }

  /// Rows and position are one transaction of the sink's own; the checkpoint holds a copy.
  var keepsPosition: Bool { get }

  /// Records can be read into the sink, beside the events that change them.
  var takesReads: Bool { get }

  /// Records that events do not have right are read again into the sink's tables.
  var repairsRecords: Bool { get }

  /// Rows go to standard output, which a run then has for nothing else.
  var takesStandardOutput: Bool { get }

  /// A description of the sink for `check`.
  var summary: String { get }

  /// Why both cannot be in one pipeline: the member at fault, and a sentence; nil when they can.
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)?

  /// Why these topics cannot go to this sink together; nil when they can.
  func conflict(among topics: [SourceConfiguration.Topic]) -> String?

  /// What its owner may not know of: connections that others can read. One sentence each, with the
  /// remedy.
  var securityWarnings: [String] { get }

  /// Problems that would stop a run on this machine, found without a connection. Creates nothing.
  func localFailures() -> [RunFailure]

  /// The sink of a run; without I/O.
  func runSink(_ context: SinkContext) -> any RunSink

  /// Shows lines or rows as the sink would write them; without I/O.
  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview

  /// The highest epoch of a topic in the output, as far as it is known without a connection; 0
  /// without one.
  func exportedEpoch(ofTopic topic: String, pipeline: String) throws -> Int

  /// How the sink stands, read without lock.
  func status(_ reading: SinkStatusReading) throws -> any SinkStatus

  /// How a removed sink stands.
  ///
  /// - Parameter kept: of `CheckpointDocument.removedSinks`.
  /// - Returns: nil for a sink of another kind, or without anything to report.
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> (any SinkStatus)?

  /// Finishes what removed sinks had in progress.
  ///
  /// - Parameter log: receives what could not be finished.
  /// - Returns: `removed_sinks` of the next checkpoint.
  static func finishRemoved(
    _ succession: SinkSuccession, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink]

  /// Connects; a line per thing that was found to work. Makes nothing. What it throws is reported
  /// with the sink's name before it.
  func checkConnection(_ configuration: PipelineConfiguration) throws -> [String]
}

extension ConfiguredSink {
  private static var allKeys: [Key<Self>] {
    let own: [Key<Self>] = [
      .type(Self.type, called: "sink", "Kind of the sink."),
      .key(
        "name", \.name, .identifier, "Identity of the sink in checkpoints and reports.",
        example: "warehouse"),
    ]
    return own + Self.keys + [
      .key(
        "stages", \.stages, .stages,
        "Stages for this sink only, after those of the pipeline.", default: [],
        example: [["type": "drop", "columns": ["Description"]]]),
      .key(
        "start", \.start, .start,
        "Where the sink begins if the pipeline's checkpoint does not know it."),
    ]
  }

  static var allDeclarations: [KeyDeclaration] { Self.allKeys.declarations() }

  /// Reports what is wrong; nil when no sink can be made at all.
  static func read(_ reader: JSONReader) -> Self? { reader.read(Self.allKeys) }

  static var secretVariables: [String] { [] }
  static func passwords(in url: String) -> [String] { [] }
  static func failure(_ error: any Error) -> RunFailure? { nil }
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> (any SinkStatus)? { nil }
  var columnWatcher: (any Transform)? { nil }
  var keepsPosition: Bool { false }
  var takesReads: Bool { false }
  var repairsRecords: Bool { false }
  var takesStandardOutput: Bool { false }
  static var commitMaxEvents: Int { 2000 }
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)? { nil }
  func conflict(among topics: [SourceConfiguration.Topic]) -> String? { nil }
  func exportedEpoch(ofTopic topic: String, pipeline: String) throws -> Int { 0 }
  var securityWarnings: [String] { [] }
  func localFailures() -> [RunFailure] { [] }
  func checkConnection(_ configuration: PipelineConfiguration) throws -> [String] { [] }

  static func finishRemoved(
    _ succession: SinkSuccession, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink] { succession.removed }
}

/// Where a sink begins that the checkpoint of its pipeline does not know.
enum SinkStart: String, CaseIterable, Sendable {
  /// With the events after the pipeline's position.
  case now
}

extension Kind<SinkStart> {
  fileprivate static var start: Self {
    Self(
      .choice(of: SinkStart.self), example: { _ in "now" },
      read: { reader, name, isRequired in
        guard reader.any(name)?.string != "earliest" else {
          reader.report(
            name,
            "a sink added to an existing pipeline can only start at \"now\"; to get earlier "
              + "events, give it a pipeline of its own with \"start\": \"earliest\"")
          return nil
        }
        return Self.choice().read(reader, name, isRequired)
      })
  }
}
