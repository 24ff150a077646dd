/// Folds the lines of one record, reads first and then the changes in stream order, by the
/// documented rule: for each field its newest read, followed by the changes from the first that this
/// read may not contain.
///
/// A read contains changes that were committed more than five seconds before its `SystemModstamp`,
/// up to the first that was not. It also contains all changes up to one in a file before its own,
/// up to the record's creation, or up to an older gap event, and all that an older read contains. A
/// read of a record that was restored contains that if it contains the deletion. A read of some
/// fields is applied to the reads before it, back to the newest of all fields. Memory does not depend
/// on the number of lines: of the reads of the same fields, only the newest counts.
struct RecordStream {
  private struct Read {
    var patch: RecordPatch
    var bytes: [UInt8]
    /// Every change so far was committed long enough before the read.
    var isPrefix = true

    func isOlder(than other: RecordPatch) -> Bool {
      (self.patch.time, self.patch.readAt) <= (other.time, other.readAt)
    }

    /// Whether nothing of an older read remains after this one.
    func covers(_ older: Self) -> Bool {
      self.patch.effect == .image
        || self.patch.effect == older.patch.effect
          && RecordPatch.columns(of: self.bytes) == RecordPatch.columns(of: older.bytes)
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

  private let columnCount: Int
  /// The newest read of all fields, if there is one, and those after it; the oldest first.
  private var reads: [Read] = []
  /// The changes that the read of the same index contains and those before it do not, and at the end
  /// the changes after all reads.
  private var layers: [RecordState]
  private var hasImage = false
  /// Whether a line says more about the record than values of fields; otherwise it is not in the copy.
  private(set) var isKnown = false
  private var wasRead = false
  private var newestTime = Int64.min
  /// When the record was last read, apart from reads of some fields.
  private var readAt = Int64.min

  init(columnCount: Int) {
    self.columnCount = columnCount
    self.layers = [RecordState(columnCount: columnCount)]
  }

  /// Starts another record.
  mutating func begin() {
    self.reads.removeAll(keepingCapacity: true)
    for index in self.layers.indices { self.layers[index].clear() }
    self.hasImage = false
    self.isKnown = false
    self.wasRead = false
    self.newestTime = Int64.min
    self.readAt = Int64.min
    self.deletionTime = nil
  }

  /// Takes a read. All reads come before the first change.
  mutating func take(read patch: RecordPatch, _ bytes: [UInt8]) {
    self.newestTime = max(self.newestTime, patch.time)
    if patch.effect == .image { self.hasImage = true }
    if patch.effect != .fields {
      self.isKnown = true
      self.wasRead = true
      self.readAt = max(self.readAt, patch.readAt)
    }
    let read = Read(patch: patch, bytes: bytes)
    let place = self.reads.lastIndex { $0.isOlder(than: patch) }.map { $0 + 1 } ?? 0
    guard !self.reads[place...].contains(where: { $0.covers(read) }) else { return }
    let older = self.reads[..<place].filter { !read.covers($0) }
    self.reads.replaceSubrange(..<place, with: older + [read])
  }

  /// Call this after all reads.
  mutating func beginChanges() {
    while self.layers.count <= self.reads.count {
      self.layers.append(RecordState(columnCount: self.columnCount))
    }
  }

  mutating func take(change patch: RecordPatch, _ bytes: [UInt8]) {
    self.isKnown = true
    self.newestTime = max(self.newestTime, patch.time)
    if patch.effect == .image { self.hasImage = true }
    let change = self.placed(patch)
    var place = self.reads.count
    for index in self.reads.indices.reversed() where self.reads[index].contains(change) {
      place = index
    }
    if place < self.reads.count {
      // Earlier changes come before the read, too.
      for index in place + 1...self.reads.count where !self.layers[index].isUntouched {
        let later = self.layers[index]
        self.layers[place].apply(later)
        self.layers[index].clear()
      }
    }
    self.layers[place].apply(patch, bytes)
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

  /// Replaces `bytes` by the resulting record.
  mutating func finish(into bytes: inout [UInt8]) {
    for (index, read) in self.reads.enumerated() {
      self.layers[0].apply(read.patch, read.bytes)
      if !self.layers[index + 1].isUntouched {
        let later = self.layers[index + 1]
        self.layers[0].apply(later)
      }
    }
    self.layers[0].write(
      isPartial: !self.hasImage, wasRead: self.wasRead, newest: self.newestTime,
      readAt: self.readAt, to: &bytes)
  }
}
