/// What some events, folded, do to one record's row.
package struct RecordDelta {
  package enum Mark: UInt8 { case kept, set, cleared }

  /// UTF-8 of the record ID: in the bytes of the rows folded, or in the fold's own after `detach`.
  package internal(set) var recordID: Range<Int>
  var isIDOwn = false
  /// The values of all columns are known, so the row is replaced; else the set ones are patched in.
  package internal(set) var isReplacement: Bool
  /// A replacement whose row began without a full image. (A patch of a record never seen makes a
  /// partial row too.)
  package internal(set) var isPartial: Bool
  package internal(set) var deleted = Mark.kept
  package internal(set) var stale = Mark.kept
  /// Milliseconds since 1970 of the deletion; nil: the event had no time.
  package internal(set) var deletedAt: Int64?
  /// Deleted where deleted rows are removed: only a tombstone is left.
  package internal(set) var isRemoved = false
  /// An event that brings a tombstoned record back was among them.
  package internal(set) var isRevived = false
  /// The first event of all is a full image: nothing of the record is unknown.
  package internal(set) var beginsWithImage = false

  /// Position of the first and of the last event folded.
  package internal(set) var firstEpoch: Int32
  package internal(set) var firstOrdinal: Int64
  package internal(set) var epoch: Int32
  package internal(set) var ordinal: Int64
  /// Milliseconds since 1970 of the last event.
  package internal(set) var commitTimestamp: Int64?
  /// The record's newest read, if the row begins with it.
  package internal(set) var read: RowBuffer.Read?
  /// A read of a record whose row is in the table: what it leaves out stays.
  var keepsUnread = false
  /// An event has been applied on top of the read.
  var hasEventAfterRead = false
  /// The row of the last event, among the rows folded; -1 when `detached` holds what was taken from it.
  var lastRow: Int
  var detached: LastEvent?

  /// Columns that wait for the value in the table.
  package internal(set) var pendingDiffCount = 0

  /// Texts of a record's last event; nil is null.
  struct LastEvent {
    var eventID: Range<Int>?
    var changeType: Range<Int>?
    var commitUser: Range<Int>?
  }

  init(recordID: Range<Int>, row: RowBuffer.Row, index: Int, isReplacement: Bool) {
    self.recordID = recordID
    self.isReplacement = isReplacement
    self.isPartial = isReplacement
    self.firstEpoch = row.epoch
    self.firstOrdinal = row.ordinal
    self.epoch = row.epoch
    self.ordinal = row.ordinal
    self.commitTimestamp = row.commitTimestamp
    self.lastRow = index
  }

  mutating func note(_ row: RowBuffer.Row, index: Int) {
    self.epoch = row.epoch
    self.ordinal = row.ordinal
    self.commitTimestamp = row.commitTimestamp
    self.lastRow = index
    self.detached = nil
    if row.read == nil { self.hasEventAfterRead = true }
  }

  /// `SystemModstamp` that events are to be compared with, milliseconds since 1970.
  var stamp: Int64? { self.hasEventAfterRead ? nil : self.read?.stamp }

  mutating func delete(at time: Int64?) {
    self.deleted = .set
    self.deletedAt = time
  }

  mutating func undelete() {
    self.deleted = .cleared
    self.deletedAt = nil
  }
}

/// What a delta does to one column.
package struct DeltaCell {
  /// The offset of the value in the rows folded or, if `isOwn`, in the fold's own bytes. For a pending cell,
  /// the index of its first diff among the fold's pending ones.
  var offset: UInt32
  /// -1 is null.
  var count: Int32
  private var flags: UInt8

  private init(offset: UInt32, count: Int32, flags: UInt8) {
    self.offset = offset
    self.count = count
    self.flags = flags
  }

  static let kept = DeltaCell(offset: 0, count: -1, flags: 0)
  static let null = DeltaCell(offset: 0, count: -1, flags: 1)
  static func value(offset: UInt32, count: Int32, isOwn: Bool) -> DeltaCell {
    DeltaCell(offset: offset, count: count, flags: isOwn ? 3 : 1)
  }
  static func pending(_ first: Int) -> DeltaCell {
    DeltaCell(offset: UInt32(first), count: -1, flags: 8)
  }

  /// A value or null is known; else the column stays what it was.
  package var isSet: Bool { self.flags & 1 != 0 }
  package var isNull: Bool { self.count < 0 }
  var isOwn: Bool { self.flags & 2 != 0 }
  /// The value that the service has is not this one: a diff did not fit.
  package var isStale: Bool {
    get { self.flags & 4 != 0 }
    set { self.flags = newValue ? self.flags | 4 : self.flags & ~4 }
  }
  var isPending: Bool { self.flags & 8 != 0 }
  /// The value or null is that of the record's newest read.
  var isRead: Bool {
    get { self.flags & 16 != 0 }
    set { self.flags = newValue ? self.flags | 16 : self.flags & ~16 }
  }
}
