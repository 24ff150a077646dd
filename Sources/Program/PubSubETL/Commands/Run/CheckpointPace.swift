internal import Checkpoint
internal import Clocks
import JSON
import Pipeline

/// Stores checkpoints as often as needed.
///
/// With files, every commit needs its checkpoint. With databases alone, it holds a copy of their
/// positions for `status`, and the dead letters. Then one a second is enough, plus every one that
/// changes dead letters or begins an epoch, because no database may be the first to know of those.
final class CheckpointPace {
  private let store: FileCheckpointStore
  /// Whether some sink's state is stored only in the checkpoint.
  private let isNeeded: Bool
  private let clock: ProcessClock
  private var saved: CheckpointDocument?
  private var savedAt: ContinuousClock.Instant?
  /// The newest document that has not been stored.
  private var waiting: CheckpointDocument?

  init(_ store: FileCheckpointStore, isNeeded: Bool, clock: ProcessClock) {
    self.store = store
    self.isNeeded = isNeeded
    self.clock = clock
  }

  func save(_ document: CheckpointDocument) throws {
    let now = self.clock.now
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

  /// Stores the waiting document at the end of a run.
  func finish() throws {
    if let waiting { try self.store.save(waiting) }
    self.waiting = nil
  }
}
