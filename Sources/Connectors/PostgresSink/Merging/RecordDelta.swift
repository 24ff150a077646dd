/// The combined effect of some events on one record's row.
package struct RecordDelta {
  package enum Mark: UInt8 { case kept, set, cleared }

  /// UTF-8 of the record ID: in the bytes of the rows folded, or in the fold's own after `detach`.
  package internal(set) var recordID: Range<Int>
  var isIDOwn = false
  /// The values of all columns are known, so the row is replaced. Otherwise only the set columns
  /// change.
  package internal(set) var isReplacement: Bool
  /// A replacement whose row began without a full image. (A patch of an unknown record also creates
  /// a partial row.)
  package internal(set) var isPartial: Bool
  package internal(set) var deleted = Mark.kept
  package internal(set) var stale = Mark.kept
  /// The time of the deletion, milliseconds since 1970; nil if the event had none.
  package internal(set) var deletedAt: Int64?
  /// Deleted in a table that removes deleted rows: only a tombstone remains.
  package internal(set) var isRemoved = false
  /// One of the events restores a record that has a tombstone.
  package internal(set) var isRevived = false
  /// One of the events is a full image, so that nothing from before the first one is missing.
  package internal(set) var beginsWithImage = false

  /// Position of the first and of the last event folded.
  package internal(set) var firstEpoch: Int32
  package internal(set) var firstOrdinal: Int64
  package internal(set) var epoch: Int32
  package internal(set) var ordinal: Int64
  /// The commit time of the last event, milliseconds since 1970.
  package internal(set) var commitTimestamp: Int64?
  /// The record's newest read, if the row begins with it.
  package internal(set) var read: RowBuffer.Read?
  /// An event has been applied on top of the read.
  var hasEventAfterRead = false
  /// The metadata of the last event, in the bytes of the rows folded unless `detached` has them.
  var lastMetadata: Range<Int>
  var detached: LastEvent?

  /// The number of columns that need the table's value.
  package internal(set) var pendingDiffCount = 0

  /// Metadata texts of a record's last event; nil means null.
  struct LastEvent {
    var eventID: Range<Int>?
    var changeType: Range<Int>?
    var commitUser: Range<Int>?
  }

  init(_ row: RowBuffer.Row, isReplacement: Bool) {
    self.recordID = row.recordID
    self.isReplacement = isReplacement
    self.isPartial = isReplacement
    self.firstEpoch = row.epoch
    self.firstOrdinal = row.ordinal
    self.epoch = row.epoch
    self.ordinal = row.ordinal
    self.commitTimestamp = row.commitTimestamp
    self.lastMetadata = row.metadata
  }

  mutating func note(_ row: RowBuffer.Row) {
    self.epoch = row.epoch
    self.ordinal = row.ordinal
    self.commitTimestamp = row.commitTimestamp
    self.lastMetadata = row.metadata
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

/// The effect of a delta on one column.
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

  /// A value or null is known. Otherwise the column does not change.
  package var isSet: Bool { self.flags & 1 != 0 }
  package var isNull: Bool { self.count < 0 }
  var isOwn: Bool { self.flags & 2 != 0 }
  /// The service has another value, because a diff did not fit.
  package var isStale: Bool {
    get { self.flags & 4 != 0 }
    set { self.flags = newValue ? self.flags | 4 : self.flags & ~4 }
  }
  var isPending: Bool { self.flags & 8 != 0 }
  /// The value or null comes from the record's newest read.
  var isRead: Bool {
    get { self.flags & 16 != 0 }
    set { self.flags = newValue ? self.flags | 16 : self.flags & ~16 }
  }
}
