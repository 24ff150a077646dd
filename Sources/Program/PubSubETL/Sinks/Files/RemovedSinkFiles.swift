import Checkpoint
import Clocks
import FileSink
import JSON
import Logging

/// Finishes the files that removed sinks had in progress, so that nothing is left under a name that
/// nobody reads.
///
/// A removed sink never stops the others: its directory may be gone, moved or closed to us. Its
/// files stay known then, and each run tries again.
struct RemovedSinkFiles {
  var pipeline: String
  var org: String
  var clock: ProcessClock

  /// - Parameter log: receives files that could not be finished; a warning when the sink has just
  ///   been removed, less after that.
  /// - Returns: `removed_sinks` of the next checkpoint.
  func finish(
    _ succession: SinkSuccession?, log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink] {
    guard let succession else { return [:] }
    var removed = succession.removed
    for (name, kept) in succession.removed.sorted(by: { $0.key < $1.key }) {
      guard kept.state.openFileCount > 0, let directory = kept.state.directory else { continue }
      func unfinished(_ reason: String) {
        log(
          succession.leaving.contains(name) ? .warning : .info,
          "the files in progress of the removed sink '\(name)' could not be finished: "
            + "\(reason). Put its directory back, and the next run finishes them; if the "
            + "directory is gone for good, ignore this message")
      }
      // Looked at first: to recover makes the directory where there is none.
      guard FilePath.exists(directory) else {
        unfinished("the directory \(directory) does not exist")
        continue
      }
      do {
        var configuration = FileSinkConfiguration(
          name: name, directory: directory, pipeline: self.pipeline, org: self.org)
        configuration.clock = self.clock
        let sink = FileSink(configuration)
        try sink.recover(from: kept.state.json)
        removed[name]?.state = SinkState(try sink.flush(finish: true))
      } catch let error as FileSinkError {
        unfinished(error.message)
      }
    }
    return removed
  }
}
