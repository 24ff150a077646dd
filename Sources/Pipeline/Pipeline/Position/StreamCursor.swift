/// The progress in the stream of one topic, and the place to resume from.
///
/// A value type without I/O. It follows the events in stream order; `TopicPosition` is its stored
/// form. The rules (Architecture.md#positions):
/// - CUSTOM is exclusive, so a position must not lie inside a group of events with one replay ID.
///   On channels a group is closed when another ID or an empty response follows; until then the
///   rows of the group are remembered and skipped after a resume. On single-entity topics the end
///   of a response closes its last ID.
/// - If no ID is closed yet, the stream resumes at the earliest event, and events before the group
///   are dropped.
/// - Events sent again after a resume are recognized by (replay ID, event ID) among the last 128
///   and dropped, until the stream delivers a new event.
package struct StreamCursor: Sendable {
  package enum Verdict: Equatable {
    case new
    /// The event was exported before; it is dropped and counted.
    case repeated
  }

  /// Consecutive events with the same replay ID.
  package struct Group: Sendable, Equatable {
    package var replayID: [UInt8]
    package var rows: [RowKey]
  }

  /// A group whose rows are delivered again, in any order.
  private struct TakenGroup {
    var replayID: [UInt8]
    var rows: Set<RowKey>

    init(_ group: Group) {
      self.replayID = group.replayID
      self.rows = Set(group.rows)
    }

    func contains(
      _ eventID: UnsafeBufferPointer<UInt8>, _ recordIDs: UnsafeBufferPointer<UInt8>
    ) -> Bool {
      self.rows.contains(RowKey(eventID: Array(eventID), recordIDs: Array(recordIDs)))
    }
  }

  /// Identifies a row among those with the same replay ID.
  package struct RowKey: Sendable, Hashable {
    package var eventID: [UInt8]
    /// The event's record IDs, joined; empty for platform events.
    package var recordIDs: [UInt8]

    package init(eventID: [UInt8], recordIDs: [UInt8]) {
      self.eventID = eventID
      self.recordIDs = recordIDs
    }
  }

  /// The relation of incoming events to those already taken. A newly opened stream may be behind.
  private enum Phase {
    /// Every event is new.
    case current
    /// Events taken before may be delivered again until a new one arrives. Rows of the group that
    /// was open may arrive in any order, mixed with new rows of the group.
    case repeating(TakenGroup?)
    /// The stream began at the earliest event to find the open group again.
    case seekingGroup(TakenGroup)
    /// The stream began at the earliest event to find this ID again; earlier events predate this
    /// pipeline.
    case seekingFirst(ReplayID)
    /// This store is ahead of the store for which the stream was resumed, so events up to its last
    /// one are already durable here.
    case passing(TopicPosition.LastEvent, droppedCount: Int64, limit: Int64, TakenGroup?)
  }

  package let closesAtResponseEnd: Bool
  package private(set) var epoch: Int
  /// Ordinal of the next event.
  package private(set) var ordinal: Int64
  /// Subscribing with CUSTOM at this ID delivers everything not yet taken, and perhaps `open`
  /// again.
  package private(set) var resume: ReplayID?
  package private(set) var lastEvent: TopicPosition.LastEvent?
  /// When the position was last known to be valid, in milliseconds since 1970.
  package private(set) var confirmedAt: Int64?
  /// Every change committed before this time has been taken; milliseconds since 1970.
  package private(set) var completeThrough: Int64?
  /// The newest commit time of this epoch's changes, in milliseconds since 1970.
  package private(set) var newestCommit: Int64?
  /// The number of epochs begun because of an unusable replay ID.
  private var holes = 0
  /// The start of this epoch as set by the user. Applies until there is a place to resume from.
  private var start: TopicPosition.Start?
  private var open = OpenGroup()
  private var recent = RecentEvents()
  private var phase = Phase.current
  /// Replay ID of the first event of an epoch that began without a position.
  package private(set) var first: ReplayID?

  /// The number of events that may always be dropped before the last event of a store arrives
  /// (Architecture.md#several-stores).
  package static let passingLimit: Int64 = 10_000

  /// - Parameter isChannel: several entities share the stream, so groups of equal IDs occur.
  package init(isChannel: Bool, stored: TopicPosition? = nil) {
    self.closesAtResponseEnd = !isChannel
    self.epoch = stored?.epoch ?? 1
    self.ordinal = stored?.nextOrdinal ?? 0
    self.resume = stored?.resume
    self.lastEvent = stored?.lastEvent
    self.confirmedAt = stored?.confirmedAt
    self.completeThrough = stored?.completeThrough
    self.newestCommit = stored?.newestCommit
    if let group = stored?.openGroup { self.open = OpenGroup(group) }
    self.holes = stored?.holes ?? 0
    self.start = stored?.start
    self.first = stored?.first
    if let recent = stored?.recent { self.recent = recent }
  }

  /// Call this before the stream is opened. Returns the point to start from, or nil if there is
  /// none yet.
  package mutating func reopen() -> StartPoint? {
    let group = self.open.group.map { TakenGroup($0) }
    self.phase = .repeating(group)
    if let resume { return .after(resume) }
    if let group {
      self.phase = .seekingGroup(group)
      return .earliest
    }
    return switch self.start {
    case .earliest: .earliest
    case .latest: .latest
    case nil: nil
    }
  }

  /// Call this after `reopen` if the stream is opened for a store that is behind this one:
  /// everything up to the last event will be dropped.
  ///
  /// - Parameter distance: the number of events that the other store lacks. Because events may be
  ///   repeated, twice as many may pass before the search for the last one ends.
  package mutating func passBy(distance: Int64) {
    let group = self.open.group.map { TakenGroup($0) }
    let limit = max(Self.passingLimit, min(distance, .max / 2) * 2)
    self.phase =
      self.lastEvent.map { .passing($0, droppedCount: 0, limit: limit, group) }
      ?? .repeating(group)
  }

  /// Call this if another store has taken events since `first` and this one has taken none: the
  /// stream will be opened at the earliest event.
  package mutating func seek(_ first: ReplayID) { self.phase = .seekingFirst(first) }

  /// Begins a new epoch, because the stored position has become unusable.
  ///
  /// - Parameter epoch: the number of the new epoch, higher than that of any store.
  package mutating func begin(epoch: Int) {
    self.epoch = epoch
    self.holes += 1
    self.start = nil
    self.ordinal = 0
    self.newestCommit = nil
    self.resume = nil
    self.open.removeAll()
    self.phase = .current
    self.first = nil
    self.lastEvent = nil
    self.recent = RecentEvents()
  }

  /// Counts from 0 in a new epoch, without changing the place in the stream.
  package mutating func renumber(epoch: Int) {
    self.epoch = epoch
    self.ordinal = 0
  }

  /// Judges the next event of the stream. Call `take` for it if it is new.
  ///
  /// - Parameter recordIDs: the event's record IDs, joined; needed only on channels.
  package mutating func judge(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>,
    recordIDs: UnsafeBufferPointer<UInt8>
  ) throws(PassedPositionError) -> Verdict {
    switch self.phase {
    case .current: return .new
    case .repeating: break
    case .seekingGroup(let group):
      // An event that may follow the group ends the search: the group itself may have expired, and
      // later events must not be dropped.
      if ReplayID(replayID).isCertainlyBefore(ReplayID(group.replayID)) { return .repeated }
      self.phase = .repeating(group)
    case .seekingFirst(let first):
      if ReplayID(replayID).isCertainlyBefore(first) { return .repeated }
      self.phase = .repeating(nil)
    case .passing(let last, let droppedCount, let limit, let group):
      // The rows of the open group are known, so from here on they show which rows are durable.
      if let group, group.replayID.elementsEqual(replayID) {
        self.phase = .repeating(group)
        break
      }
      let isSameID = last.replayID.bytes.elementsEqual(replayID)
      if isSameID, last.eventID.elementsEqual(eventID) {
        self.phase = .repeating(group)
        return .repeated
      }
      let hasPassed = !isSameID && last.replayID.isCertainlyBefore(ReplayID(replayID))
      guard !hasPassed, droppedCount < limit else {
        throw PassedPositionError(last: last.replayID, passedCount: Int(droppedCount) + 1)
      }
      self.phase = .passing(last, droppedCount: droppedCount + 1, limit: limit, group)
      return .repeated
    }
    if case .repeating(let group?) = self.phase, group.replayID.elementsEqual(replayID) {
      return group.contains(eventID, recordIDs) ? .repeated : .new
    }
    if self.recent.contains(replayID: replayID, eventID: eventID) { return .repeated }
    self.phase = .current
    return .new
  }

  /// Counts an event as taken and returns its ordinal.
  package mutating func take(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>,
    recordIDs: UnsafeBufferPointer<UInt8>
  ) -> Int64 {
    if self.closesAtResponseEnd {
      self.recent.append(replayID: replayID, eventID: eventID)
    } else {
      if !self.open.isOf(replayID) {
        self.closeGroup()
        self.open.begin(replayID)
      }
      self.open.append(eventID: eventID, recordIDs: recordIDs)
    }
    if self.ordinal == 0, self.first == nil { self.first = ReplayID(replayID) }
    defer { self.ordinal += 1 }
    return self.ordinal
  }

  /// Whether the next events are new, whatever they are, and belong to no open group.
  package var isCurrent: Bool {
    guard self.closesAtResponseEnd, case .current = self.phase else { return false }
    return true
  }

  /// Counts events of a batch as taken; the same as `take` for each of them. Call this only while
  /// `isCurrent`.
  package mutating func take(_ events: Range<Int>, of batch: RecordBatch) {
    for index in events.suffix(RecentEvents.capacity) {
      let event = batch.events[index]
      self.recent.append(
        replayID: batch.bytes(event.replayID), eventID: batch.bytes(event.eventID))
    }
    if self.ordinal == 0, self.first == nil, let first = events.first {
      self.first = ReplayID(batch.bytes(batch.events[first].replayID))
    }
    self.ordinal += Int64(events.count)
  }

  /// The size of the open group in memory.
  package var openGroupByteCount: Int { self.open.memoryByteCount }
  package var openGroupRowCount: Int { self.open.count }

  /// Call this when a response with events has been taken completely.
  ///
  /// - Parameters:
  ///   - replayID, eventID: the IDs of its last event.
  ///   - confirmedAt: the last time at which the service certainly retained the ID, in milliseconds
  ///     since 1970.
  ///   - newestCommit: the newest commit time of its changes; nil if it has none.
  package mutating func endResponse(
    replayID: ReplayID, eventID: [UInt8], confirmedAt: Int64, newestCommit: Int64? = nil
  ) {
    if self.isBehindStream { return }
    if let newestCommit { self.newestCommit = max(self.newestCommit ?? newestCommit, newestCommit) }
    self.lastEvent = TopicPosition.LastEvent(replayID: replayID, eventID: eventID)
    self.confirmedAt = confirmedAt
    if self.closesAtResponseEnd { self.resume = replayID }
  }

  /// Call this for an empty response. Its ID may be ahead of the last event; the stream can resume
  /// from it, because every event before it has been taken.
  ///
  /// - Parameter completeThrough: the time that the response proves; see `prove`.
  package mutating func keepalive(
    _ latest: ReplayID, now: Int64, completeThrough: Int64? = nil
  ) {
    // An ID from before the open group does not close it.
    if self.isBehindStream || self.open.isAfter(latest) { return }
    self.closeGroup()
    self.confirmedAt = now
    if let completeThrough { self.prove(completeThrough: completeThrough) }
    guard !latest.bytes.isEmpty else { return }
    if let resume = self.resume, latest.isCertainlyBefore(resume) { return }
    self.resume = latest
  }

  /// Notes that every change committed before `time` has been taken, because the stream had no more
  /// changes or delivered a later one.
  package mutating func prove(completeThrough time: Int64) {
    if self.isBehindStream { return }
    self.completeThrough = max(self.completeThrough ?? time, time)
  }

  /// Whether the stream has not yet reached this store's last event, or its first.
  package var isBehindStream: Bool {
    switch self.phase {
    case .passing, .seekingFirst: true
    case .current, .repeating, .seekingGroup: false
    }
  }

  /// The position for the checkpoint once everything taken is durable.
  package var stored: TopicPosition {
    TopicPosition(
      epoch: self.epoch, nextOrdinal: self.ordinal, resume: self.resume,
      lastEvent: self.lastEvent, openGroup: self.open.group,
      recent: self.recent, confirmedAt: self.confirmedAt,
      completeThrough: self.completeThrough, newestCommit: self.newestCommit, holes: self.holes,
      start: self.resume == nil ? self.start : nil, first: self.first)
  }

  private mutating func closeGroup() {
    guard !self.open.isEmpty else { return }
    self.open.forEachEvent { replayID, eventID in
      self.recent.append(replayID: replayID, eventID: eventID)
    }
    var replayID = self.resume?.bytes ?? []
    // The bytes get a single owner, so that their memory is reused.
    self.resume = nil
    self.open.close(&replayID)
    self.resume = ReplayID(replayID)
  }
}

/// The last event of a store did not arrive again, so the service sends a different stream. The run
/// stops instead of discarding events forever.
package struct PassedPositionError: Error, Sendable {
  package var last: ReplayID
  package var passedCount: Int
}
