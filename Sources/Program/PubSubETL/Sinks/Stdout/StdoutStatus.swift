import JSON

/// How a stdout sink stands: its output is out of sight, so only the checkpoint tells.
struct StdoutStatus: SinkStatus {
  var name: String
  /// The checkpoint does not know it yet.
  var isNew: Bool

  func problems(isCommitted: Bool) -> [PipelineStatus.Problem] { [] }

  var summary: String { "standard output" }

  func lines(_ status: PipelineStatus) -> [String] {
    self.isNew ? ["not in the checkpoint yet"] : []
  }

  var json: JSONValue {
    ["name": .string(self.name), "type": .string(StdoutSettings.type), "new": .boolean(self.isNew)]
  }
}
