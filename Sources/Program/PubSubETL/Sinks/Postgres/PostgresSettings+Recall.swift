import JSON
import PostgresSink

extension PostgresSettings: RecallingSink {
  func recall(
    _ count: Int, _ configuration: PipelineConfiguration, _ body: (JSONValue) throws -> Void
  ) throws {
    let table = try CheckpointTable(
      pipeline: configuration.name, sink: self.name, self.sink(of: configuration))
    guard let rows = try table.recentRows(count) else {
      throw RunFailure(
        .noHistory,
        "sink '\(self.name)' has no history tables, so it does not know what has changed; see the "
          + "changes as they come with '\(configuration.command("tail"))'")
    }
    for row in rows { try body(row) }
  }
}
