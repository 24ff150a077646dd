import Checkpoint
import JSON
import Pipeline

@testable import PubSubETL

/// `{"type": "counts", "file": "../out/counts.json"}`
struct CountsSettings: ConfiguredSink {
  static let type = "counts"
  static let schemaDescription = "Counts the rows of each object."

  var name = CountsSettings.type
  var file = ""
  var start: SinkStart?
  var stages: [StageConfiguration] = []

  // A mistake is reported with its place in the pipeline file.
  static var keys: [Key<Self>] {
    [
      .required(
        "file", \.file, .path, "File with the counts; relative to this file.",
        example: "../out/counts.json")
    ]
  }

  var place: String { self.file }
  var summary: String { "counts of rows in \(self.file)" }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview { NDJSONPreview() }

  func runSink(_ context: SinkContext) -> any RunSink { CountsRun(self) }

  func status(_ reading: SinkStatusReading) -> any SinkStatus {
    CountsStatus(name: self.name, file: self.file)
  }
}

/// A counts sink during a run.
final class CountsRun: RunSink {
  let name: String
  private let file: String
  private let sink: CountsSink
  private var stored: JSONValue?

  init(_ settings: CountsSettings) {
    self.name = settings.name
    self.file = settings.file
    self.sink = CountsSink(name: settings.name, file: settings.file)
  }

  func survey(from state: SinkState?) -> [String] {
    self.stored = state?.json
    return []
  }

  func recover() throws { try self.sink.recover(from: self.stored) }

  var store: SinkStore { .checkpointed(self.sink) }
  var output: SinkOutput { SinkOutput() }

  func reportEntry(_ statistics: RunStatistics) -> RunReport.Sink {
    RunReport.Sink(name: self.name, type: CountsSettings.type, target: self.file)
  }
}

/// How a counts sink stands, for `status`.
struct CountsStatus: SinkStatus {
  var name: String
  var file: String

  func problems(isCommitted: Bool) -> [PipelineStatus.Problem] { [] }
  var summary: String { self.file }
  func lines(_ status: PipelineStatus) -> [String] { [] }
  var json: JSONValue { ["name": .string(self.name), "type": .string(CountsSettings.type)] }
}
