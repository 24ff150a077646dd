import Checkpoint
import FileSink
import JSON
import Pipeline

/// `{"type": "stdout"}`: NDJSON lines on standard output.
struct StdoutSettings: ConfiguredSink, Equatable {
  static let type = "stdout"

  var common = SinkKeys(name: StdoutSettings.type)
  var int64 = FilesSettings.Int64Form.number

  static var keys: [Key<Self>] {
    [.key("int64", \.int64, .choice(called: "form"), FilesSettings.int64Text)]
  }

  var place: String { SinkPlace.standardOutput }

  var summary: String {
    let stages = self.stages.typeNames
    return "\(stages.isEmpty ? "" : stages + " to ")standard output, each event at least once"
  }

  private var format: NDJSONFormat { NDJSONFormat(int64AsStrings: self.int64 == .string) }

  func open(_ context: SinkContext) -> StdoutSink {
    let interruption = context.interruption
    return StdoutSink(
      name: self.name, descriptor: StandardStream.output.rawValue, format: self.format,
      givesUp: { interruption.hasLasted(RunnerConfiguration.stopPatience) })
  }

  /// What was written is out of sight, so only the checkpoint tells.
  func status(_ reading: SinkStatusReading) -> SinkStatus {
    let isNew = reading.checkpoint.map { $0.sinks[self.name] == nil } ?? false
    return SinkStatus(
      name: self.name, summary: self.place, lines: isNew ? ["not in the checkpoint yet"] : [],
      json: [
        "name": .string(self.name), "type": .string(Self.type), "new": .boolean(isNew),
      ])
  }

  static let schemaDescription =
    "Writes NDJSON lines to standard output: each event at least once, since lines in a pipe "
    + "cannot be taken back."
}

extension StdoutSettings: ExclusiveSink, PreviewingSink {
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)? {
    guard other.takesStandardOutput else { return nil }
    return ("type", "only one sink can write to standard output, and sink '\(other.name)' does")
  }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview {
    LinesPreview(self.format)
  }
}
