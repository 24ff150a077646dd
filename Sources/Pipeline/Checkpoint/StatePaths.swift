/// The paths of one pipeline in its state directory.
package struct StatePaths: Sendable, Equatable {
  /// Absolute.
  package let directory: String
  package let pipeline: String

  package init(directory: String, pipeline: String) {
    self.directory = directory
    self.pipeline = pipeline
  }

  package var checkpoint: String { "\(self.directory)/\(self.pipeline).checkpoint.json" }
  /// Held by the run in progress; holds its process ID.
  package var lock: String { "\(self.directory)/\(self.pipeline).lock" }
  /// The report of the last run, written at its end.
  package var lastRun: String { "\(self.directory)/\(self.pipeline).last-run.json" }
  /// The waits of the run in progress.
  package var waiting: String { "\(self.directory)/\(self.pipeline).waiting.json" }
  /// The file of open incidents and their notifications.
  package var incidents: String { "\(self.directory)/\(self.pipeline).incidents.json" }
  /// What the last comparison with the org has found.
  package var verdict: String { "\(self.directory)/\(self.pipeline).verdict.json" }
  /// The identity of the state directory for databases; see `FileCheckpointStore.identity`.
  package var identity: String { "\(self.directory)/\(self.pipeline).identity" }
  /// Schemas of the service, of all pipelines with this state directory.
  package var schemas: String { "\(self.directory)/schemas" }
  /// What the org says about the objects without change events, so that not every run has to ask.
  package var lookups: String { "\(self.directory)/\(self.pipeline).lookups.json" }
  /// Lines about the newest runs.
  package var runs: String { "\(self.directory)/\(self.pipeline).runs.ndjson" }
  /// A line for each change of positions by hand.
  package var journal: String { "\(self.directory)/\(self.pipeline).journal.ndjson" }
}
