import Checkpoint
import FileSink
import Pipeline

extension SinkContext {
  /// Where events go that cannot be exported: files as those of a files sink, brought into line with
  /// the checkpoint.
  func deadLetters(recoveredFrom state: SinkState?) throws -> DeadLetterFile {
    let letters = DeadLetterFile(
      directory: self.configuration.deadLetter.directory, pipeline: self.configuration.name,
      org: self.org, payload: self.configuration.deadLetter.payload,
      acceptsMissing: self.options.recovery.acceptMissing, clock: self.clock)
    let configuration = self.configuration
    letters.onDrop = { lost in
      try SinkDatabases(configuration).drop(lost, topics: configuration.source.topics.map(\.name))
    }
    try letters.recover(from: state?.json)
    return letters
  }
}
