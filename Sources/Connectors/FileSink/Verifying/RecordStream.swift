/// Folds the lines of one record, reads first and then the changes in stream order, by the
/// documented rule: the newest read, followed by the changes from the first that it may not
/// contain.
///
/// A read contains changes that were committed more than five seconds before its `SystemModstamp`,
/// up to the first that was not. It also contains all changes up to one in a file before its own,
/// up to the record's creation, or up to an older gap event. A read of a record that was restored
/// contains that if it contains the deletion. A partial read is applied to the newest complete read. Memory does
/// not depend on the number of lines.
struct RecordStream {
  private struct Read {
    var patch: RecordPatch
    var bytes: [UInt8]
    /// Every change so far was committed long enough before the read.
    var isPrefix = true

    func isOlder(than other: RecordPatch) -> Bool {
      (self.patch.time, self.patch.readAt) <= (other.time, other.readAt)
    }

    /// Whether the read contains the change, and so all earlier ones.
    mutating func contains(_ change: RecordPatch) -> Bool {
      let isBefore =
        change.time != Int64.min && change.time < self.patch.time - RecordStream.tolerance
      if !isBefore { self.isPrefix = false }
      return self.isPrefix || isBefore && change.effect.isGap || change.flags.contains(.isCreation)
        || (change.epoch, change.ordinal) < (self.patch.epoch, self.patch.ordinal)
    }
  }

  /// How much older, in milliseconds, a change has to be than a read that contains it.
  private static let tolerance: Int64 = 5000

  /// The time of the previous change if it is a deletion.
  private var deletionTime: Int64?

  private var newest: Read?
  /// The newest read with all fields, if `newest` lacks some.
  private var whole: Read?
  /// The state before the newest read, and the state after it.
  private var base: RecordState
  private var top: RecordState
  private var hasImage = false
  private var newestTime = Int64.min

  init(columnCount: Int) {
    self.base = RecordState(columnCount: columnCount)
    self.top = self.base
  }

  /// Starts another record.
  mutating func begin() {
    self.newest = nil
    self.whole = nil
    self.base.clear()
    self.top.clear()
    self.hasImage = false
    self.newestTime = Int64.min
    self.deletionTime = nil
  }

  /// Takes a read. All reads come before the first change.
  mutating func take(read patch: RecordPatch, _ bytes: [UInt8]) {
    self.newestTime = max(self.newestTime, patch.time)
    if patch.effect == .image {
      self.hasImage = true
      if self.whole.map({ $0.isOlder(than: patch) }) ?? true {
        self.whole = Read(patch: patch, bytes: bytes)
      }
    }
    if self.newest.map({ $0.isOlder(than: patch) }) ?? true {
      self.newest = Read(patch: patch, bytes: bytes)
    }
  }

  /// Call this after all reads.
  mutating func beginChanges() {
    guard let newest = self.newest else { return }
    if newest.patch.effect == .image { self.whole = nil }
    self.restoreWhole()
  }

  mutating func take(change patch: RecordPatch, _ bytes: [UInt8]) {
    self.newestTime = max(self.newestTime, patch.time)
    if patch.effect == .image { self.hasImage = true }
    guard self.newest != nil else { return self.base.apply(patch, bytes) }
    let change = self.placed(patch)
    if self.whole?.contains(change) == true {
      // The newest read contains at least as many changes as the complete one.
      _ = self.newest?.contains(change)
      self.restoreWhole()
      self.top.clear()
    } else if self.newest?.contains(change) == true {
      if self.newest?.patch.effect != .image {
        self.base.apply(self.top)
        self.base.apply(patch, bytes)
      }
      self.top.clear()
    } else {
      self.top.apply(patch, bytes)
    }
  }

  /// The change with the time by which reads contain it. A record that could be read existed, so a
  /// read that contains its deletion contains its restoration.
  private mutating func placed(_ patch: RecordPatch) -> RecordPatch {
    var change = patch
    if change.flags.contains(.isRestoration), change.time != Int64.min {
      change.time = self.deletionTime ?? change.time - 2 * Self.tolerance
    }
    let isDeletion = patch.effect == .deletion || patch.effect == .gapDeletion
    self.deletionTime = isDeletion && patch.time != Int64.min ? patch.time : nil
    return change
  }

  private mutating func restoreWhole() {
    self.base.clear()
    if let whole = self.whole { self.base.apply(whole.patch, whole.bytes) }
  }

  /// Replaces `bytes` by the resulting record.
  mutating func finish(into bytes: inout [UInt8]) {
    if let newest = self.newest {
      self.base.apply(newest.patch, newest.bytes)
      self.base.apply(self.top)
    }
    self.base.write(
      isPartial: !self.hasImage, wasRead: self.newest != nil, newest: self.newestTime, to: &bytes)
  }
}
