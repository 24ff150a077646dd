import Checkpoint
import FileSink

extension FilesSettings {
  /// - Parameters:
  ///   - document: the checkpoint; nil before the first run.
  ///   - before: leaves the folders of this date and later ones, `2026-02-17`; nil takes all.
  ///   - pause: waits, on the caller's thread.
  func compaction(
    _ configuration: PipelineConfiguration, _ document: CheckpointDocument?,
    before: String?, pause: @escaping (Duration) -> Void
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
      before: before, pause: pause)
  }
}
