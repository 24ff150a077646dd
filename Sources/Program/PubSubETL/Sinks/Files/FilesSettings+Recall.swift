import Checkpoint
import FileSink
import JSON

extension FilesSettings: RecallingSink {
  func recall(
    _ count: Int, _ configuration: PipelineConfiguration, _ body: (JSONValue) throws -> Void
  ) throws {
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    try RecentLines.visit(
      in: self.directory, pipeline: configuration.name,
      state: document?.sinks[self.name]?.json, body)
  }
}
