/// Folds the lines of one record, reads first and then the changes in stream order, by the documented
/// rule: the newest read, with the changes on top from the first that it may not contain.
///
/// A read contains changes that were committed more than five seconds before its `SystemModstamp`,
/// up to the first that was not, and all up to one in a file before its own, or to an older gap
/// event. A partial read is applied to the newest complete read. Memory does not depend on the
/// number of lines.
struct RecordStream {
  private struct Read {
    var patch: RecordPatch
    var bytes: [UInt8]
    /// Every change so far was committed before.
    var isPrefix = true

    func isOlder(than other: RecordPatch) -> Bool {
      (self.patch.time, self.patch.readAt) <= (other.time, other.readAt)
    }

    /// Whether the read contains the change, and so all before it.
    mutating func contains(_ change: RecordPatch) -> Bool {
      let isBefore =
        change.time != Int64.min && change.time < self.patch.time - RecordStream.tolerance
      if !isBefore { self.isPrefix = false }
      return self.isPrefix || isBefore && change.effect.isGap
        || (change.epoch, change.ordinal) < (self.patch.epoch, self.patch.ordinal)
    }
  }

  /// Milliseconds by which a change has to be older than a read that contains it.
  private static let tolerance: Int64 = 5000

  private var newest: Read?
  /// The newest with all fields, if `newest` has not.
  private var whole: Read?
  /// The state below the newest read, and the state above it.
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
  }

  /// Takes a read; all of them come before the first change.
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

  /// All reads have come.
  mutating func beginChanges() {
    guard let newest = self.newest else { return }
    if newest.patch.effect == .image { self.whole = nil }
    self.restoreWhole()
  }

  mutating func take(change patch: RecordPatch, _ bytes: [UInt8]) {
    self.newestTime = max(self.newestTime, patch.time)
    if patch.effect == .image { self.hasImage = true }
    guard self.newest != nil else { return self.base.apply(patch, bytes) }
    if self.whole?.contains(patch) == true {
      // The newest read contains at least as many changes.
      _ = self.newest?.contains(patch)
      self.restoreWhole()
      self.top.clear()
    } else if self.newest?.contains(patch) == true {
      if self.newest?.patch.effect != .image {
        self.base.apply(self.top)
        self.base.apply(patch, bytes)
      }
      self.top.clear()
    } else {
      self.top.apply(patch, bytes)
    }
  }

  private mutating func restoreWhole() {
    self.base.clear()
    if let whole = self.whole { self.base.apply(whole.patch, whole.bytes) }
  }

  /// Replaces `bytes` by the record as it is.
  mutating func finish(into bytes: inout [UInt8]) {
    if let newest = self.newest {
      self.base.apply(newest.patch, newest.bytes)
      self.base.apply(self.top)
    }
    self.base.write(
      isPartial: !self.hasImage, wasRead: self.newest != nil, newest: self.newestTime, to: &bytes)
  }
}
