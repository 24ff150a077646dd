internal import Checkpoint
internal import Clocks
import JSON
import Pipeline

/// Stores checkpoints as often as needed.
///
/// With files every commit needs its checkpoint. With databases alone it holds a copy of their
/// positions, for `status` and for dead letters: one a second will do, and every one that changes
/// dead letters or begins an epoch, of which no database may know first.
final class CheckpointPace {
  private let store: FileCheckpointStore
  /// Whether some sink's state is nowhere else.
  private let isNeeded: Bool
  private var saved: CheckpointDocument?
  private var savedAt: ContinuousClock.Instant?
  /// The newest that has not been stored.
  private var waiting: CheckpointDocument?

  init(_ store: FileCheckpointStore, isNeeded: Bool) {
    self.store = store
    self.isNeeded = isNeeded
  }

  func save(_ document: CheckpointDocument) throws {
    let now = ProcessClock.now
    if !self.isNeeded, let saved, let savedAt, saved.deadLetters == document.deadLetters,
      Self.epochs(saved) == Self.epochs(document), now - savedAt < .seconds(1)
    {
      self.waiting = document
      return
    }
    try self.store.save(document)
    self.saved = document
    self.savedAt = now
    self.waiting = nil
  }

  private static func epochs(_ document: CheckpointDocument) -> [String: Int] {
    document.topics.mapValues(\.epoch)
  }

  /// Stores what has waited, at the end of a run.
  func finish() throws {
    if let waiting { try self.store.save(waiting) }
    self.waiting = nil
  }
}
