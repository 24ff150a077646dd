internal import Checkpoint
import Glibc
import JSON
import Pipeline

/// A change of positions by hand: under the lock, after consent, with a line in the journal.
enum CheckpointChange {
  /// Asks on the terminal unless `--yes` was given.
  ///
  /// - Throws: `RunFailure` (64) when nobody consents.
  static func confirm(_ isConfirmed: Bool, hiding secrets: SecretMask) throws {
    guard !isConfirmed else { return }
    if StandardStream.confirm(.unended("Store this? [y/N] ", hiding: secrets)) { return }
    throw RunFailure(
      .notConfirmed, "nothing was changed; add --yes to make the change")
  }

  /// - Throws: `CheckpointError`: 75 while a run is in progress.
  static func open(_ configuration: PipelineConfiguration) throws -> FileCheckpointStore {
    try FileCheckpointStore(
      directory: configuration.checkpoint.directory, pipeline: configuration.name, isRun: false)
  }

  /// A checkpoint with another position of one topic: the start of a new epoch.
  ///
  /// - Parameter exportedEpoch: the highest epoch of the topic that files have.
  /// - Returns: the position that was stored, nil when none was, and the new one.
  static func set(
    _ document: inout CheckpointDocument, topic: String, resume: ReplayID?,
    start: TopicPosition.Start?, exportedEpoch: Int
  ) -> (old: TopicPosition?, new: TopicPosition) {
    let old = document.topics[topic]
    let new = TopicPosition(
      beginningEpoch: max(old?.epoch ?? 0, exportedEpoch) + 1, after: resume, start: start,
      holes: old?.holes ?? 0)
    document.topics[topic] = new
    return (old, new)
  }
}
