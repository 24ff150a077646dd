import Checkpoint
import FileSink
import JSON
import Pipeline

/// `{"type": "stdout"}`: NDJSON lines on standard output.
struct StdoutSettings: ConfiguredSink, Equatable {
  static let type = "stdout"

  var name = "stdout"
  var start: SinkStart?
  var int64 = FilesSettings.Int64Form.number
  var stages: [StageConfiguration] = []

  static var keys: [Key<Self>] {
    [.key("int64", \.int64, .choice(called: "form"), FilesSettings.int64Text)]
  }

  var place: String { "standard output" }
  var takesStandardOutput: Bool { true }

  var summary: String {
    let stages = self.stages.typeNames
    return "\(stages.isEmpty ? "" : stages + " to ")standard output, each event at least once"
  }

  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)? {
    guard other.takesStandardOutput else { return nil }
    return ("type", "only one sink can write to standard output, and sink '\(other.name)' does")
  }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview {
    NDJSONPreview(NDJSONOptions(int64AsStrings: self.int64 == .string))
  }

  func runSink(_ context: SinkContext) -> any RunSink { StdoutRun(self, context) }

  func status(_ reading: SinkStatusReading) -> any SinkStatus {
    StdoutStatus(
      name: self.name,
      isNew: reading.checkpoint.map { $0.sinks[self.name] == nil } ?? false)
  }

  static let schemaDescription =
    "Writes NDJSON lines to standard output: each event at least once, since lines in a pipe "
    + "cannot be taken back."
}
