/// The paths of one pipeline in its state directory.
public struct StatePaths: Sendable, Equatable {
  /// Absolute.
  public let directory: String
  public let pipeline: String

  public init(directory: String, pipeline: String) {
    self.directory = directory
    self.pipeline = pipeline
  }

  public var checkpoint: String { "\(self.directory)/\(self.pipeline).checkpoint.json" }
  /// Held by the run in progress; holds its process ID.
  public var lock: String { "\(self.directory)/\(self.pipeline).lock" }
  /// The report of the last run, written at its end.
  public var lastRun: String { "\(self.directory)/\(self.pipeline).last-run.json" }
  /// The waits of the run in progress.
  public var waiting: String { "\(self.directory)/\(self.pipeline).waiting.json" }
  /// The identity of the state directory for databases; see `FileCheckpointStore.identity`.
  public var identity: String { "\(self.directory)/\(self.pipeline).identity" }
  /// Schemas of the service, of all pipelines with this state directory.
  public var schemas: String { "\(self.directory)/schemas" }
  /// A line for each change of positions by hand.
  public var journal: String { "\(self.directory)/\(self.pipeline).journal.ndjson" }
}
