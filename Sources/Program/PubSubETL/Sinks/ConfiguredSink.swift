import JSON
import Pipeline

/// A sink as its object in the pipeline file means it: the required part of what a kind of sink is to
/// the program. What only some kinds can do is a protocol of its own, found by conformance
/// (`SinkAbilities.swift`).
///
/// Its `keys` are those but `type` and the ones that every sink has.
protocol ConfiguredSink: KeyedObject, Sendable {
  /// The sink of a run: a `CheckpointedSink`, or a `PositionKeepingSink`.
  associatedtype Opened: AnyObject

  /// The value of `type` in the pipeline file.
  static var type: String { get }

  /// The sink in a sentence, for the schema of pipeline files.
  static var schemaDescription: String { get }

  var common: SinkKeys { get set }

  /// Where rows go, as checkpoints, reports and renamed sinks know it: two sinks with the same place
  /// share their output.
  var place: String { get }

  /// A description of the sink for `check`.
  var summary: String { get }

  /// Makes the sink of a run. A sink that keeps its position connects; the others do no I/O before
  /// `recover`, or `SurveyedSink.survey`.
  func open(_ context: SinkContext) throws -> Opened

  /// How the sink stands, read without lock.
  func status(_ reading: SinkStatusReading) throws -> SinkStatus
}

/// The keys that every sink has.
struct SinkKeys: Sendable, Equatable {
  /// The sink's identity in checkpoints and reports, unique in the pipeline.
  var name: String
  /// Nil: a new sink beside an old checkpoint is an error.
  var start: SinkStart?
  /// Stages after those of the pipeline, for this sink only.
  var stages: [StageConfiguration] = []

  init(name: String) { self.name = name }
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

  static var allDeclarations: [KeyDeclaration] { Self.allKeys.map(\.declaration) }

  /// Reports what is wrong; nil when no sink can be made at all.
  static func read(_ reader: JSONReader) -> Self? { reader.read(Self.allKeys) }

  var name: String {
    get { self.common.name }
    set { self.common.name = newValue }
  }

  var start: SinkStart? {
    get { self.common.start }
    set { self.common.start = newValue }
  }

  var stages: [StageConfiguration] {
    get { self.common.stages }
    set { self.common.stages = newValue }
  }

  /// Rows and position are one transaction of the sink's own; the checkpoint holds a copy.
  var keepsPosition: Bool { Opened.self is any PositionKeepingSink.Type }

  /// Records can be read into the sink, beside the events that change them.
  var takesReads: Bool { Opened.self is any RecordReceiver.Type }

  /// Rows go to standard output, which a run then has for nothing else.
  var takesStandardOutput: Bool { self.place == SinkPlace.standardOutput }

  /// Records that events do not have right are read again into the sink's tables.
  var repairsRecords: Bool { (self as? any RepairableSink)?.hasCurrentRows ?? false }

  /// What the sink would write. Rows are shown as lines if the sink does not say it.
  func preview(_ configuration: PipelineConfiguration) -> any LinePreview {
    (self as? any PreviewingSink)?.linePreview(configuration) ?? LinesPreview()
  }
}

enum SinkPlace {
  static let standardOutput = "standard output"
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
