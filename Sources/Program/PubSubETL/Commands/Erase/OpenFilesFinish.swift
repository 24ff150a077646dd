import Checkpoint
import Clocks
import FileSink
import Pipeline

/// Finishes the files that earlier runs left in progress, and removes what the checkpoint does not know,
/// as the next run would.
struct OpenFilesFinish {
  let configuration: PipelineConfiguration
  let store: FileCheckpointStore
  let clock: ProcessClock

  /// - Returns: the checkpoint as it is then; nil before the first run.
  func run() throws -> CheckpointDocument? {
    guard var document = try self.store.load() else { return nil }
    let sinks = try self.configuration.fileSinks.compactMap { settings -> FileSink? in
      guard let state = document.sinks[settings.name] else { return nil }
      var configuration = settings.finishing(self.configuration, org: document.org)
      configuration.clock = self.clock
      let sink = FileSink(configuration)
      try sink.recover(from: state.json)
      return sink
    }
    let letters = DeadLetterFile(
      directory: self.configuration.deadLetter.directory, pipeline: self.configuration.name,
      org: document.org, clock: self.clock)
    if document.deadLetters != nil { try letters.recover(from: document.deadLetters?.json) }
    // The second checkpoint drops what the first one announces.
    for _ in 0..<2 {
      for sink in sinks { document.sinks[sink.name] = SinkState(try sink.flush(finish: true)) }
      if document.deadLetters != nil {
        document.deadLetters = SinkState(try letters.flush(finish: true))
      }
      try self.store.save(document)
      var hasChanged = false
      for sink in sinks where try sink.committed() { hasChanged = true }
      if document.deadLetters != nil, try letters.committed() { hasChanged = true }
      if !hasChanged { break }
    }
    return document
  }
}
