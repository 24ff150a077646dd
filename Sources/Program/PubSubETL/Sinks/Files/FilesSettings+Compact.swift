import Checkpoint
import FileSink

extension FilesSettings {
  /// - Parameters:
  ///   - document: the checkpoint; nil before the first run.
  ///   - pause: waits, on the caller's thread.
  func compaction(
    _ configuration: PipelineConfiguration, _ document: CheckpointDocument?,
    pause: @escaping (Duration) -> Void
  ) -> FileCompaction {
    FileCompaction(
      FileSinkConfiguration(
        name: self.name, directory: self.directory, compressionLevel: self.compressionLevel,
        rotation: FileSinkConfiguration.Rotation(
          maxByteCount: self.rotateBytes, maxEventCount: self.rotateEvents),
        pipeline: configuration.name, org: document?.org ?? "", permissions: self.permissions),
      state: document?.sinks[self.name]?.json,
      letters: FileCompaction.Letters(
        directory: configuration.deadLetter.directory, state: document?.deadLetters?.json),
      pause: pause)
  }
}
