/// A set of stores by number: 0 is the checkpoint with its sinks; the others are sinks that keep
/// their own position.
package struct StoreSet: Sendable, Equatable {
  /// A pipeline file may have 32 sinks.
  package static let capacity = 64

  private var bits: UInt64 = 0

  package init() {}

  package var isEmpty: Bool { self.bits == 0 }
  package mutating func insert(_ store: Int) {
    // Shifting beyond the last bit is not an error, so the store would silently get nothing.
    precondition((0..<Self.capacity).contains(store), "store \(store) of \(Self.capacity)")
    self.bits |= 1 << UInt64(store)
  }

  package func contains(_ store: Int) -> Bool {
    (0..<Self.capacity).contains(store) && self.bits & 1 << UInt64(store) != 0
  }
}

/// The position of one topic in every store.
///
/// One subscription feeds all stores. They commit one after the other, so a crash can leave some
/// ahead. The stream then resumes for the store furthest behind, and the others drop what they
/// already have. A value type without I/O; tests explore it with the production runner.
package struct TopicCursors: Sendable {
  package private(set) var stores: [StreamCursor]

  /// - Parameter stored: the position of each store; nil if it has none.
  package init(isChannel: Bool, stored: [TopicPosition?]) {
    self.stores = stored.map { StreamCursor(isChannel: isChannel, stored: $0) }
  }

  package var closesAtResponseEnd: Bool { self.stores[0].closesAtResponseEnd }
  /// The highest epoch of all stores.
  package var epoch: Int { self.stores.reduce(0) { max($0, $1.epoch) } }
  /// The place of the next event in the store furthest ahead.
  package var end: StreamPlace {
    self.stores.reduce(StreamPlace(epoch: 0, ordinal: 0)) {
      max($0, StreamPlace(epoch: $1.epoch, ordinal: $1.ordinal))
    }
  }
  /// Where the store furthest behind would resume.
  package var resume: ReplayID? { self.stores[self.furthestBehind].resume }
  /// Whether there is a place to resume from: an event or a keepalive has arrived.
  package var hasPlace: Bool { self.resume != nil || self.hasEvent }
  /// The newest commit time in the store furthest behind.
  package var newestCommit: Int64? { self.stores[self.furthestBehind].newestCommit }
  package var hasEvent: Bool { self.stores[self.furthestBehind].lastEvent != nil }
  /// The oldest confirmation of all stores; nil if any was never confirmed.
  package var confirmedAt: Int64? {
    var oldest = Int64.max
    for store in self.stores {
      guard let confirmed = store.confirmedAt else { return nil }
      oldest = min(oldest, confirmed)
    }
    return oldest
  }

  /// The time through which every store is complete; nil if unknown for any.
  package var completeThrough: Int64? {
    var earliest = Int64.max
    for store in self.stores {
      guard let through = store.completeThrough else { return nil }
      earliest = min(earliest, through)
    }
    return earliest
  }

  /// Call this before the stream is opened.
  ///
  /// - Parameter start: where the stream begins without a position.
  /// - Returns: nil if there is neither a position nor a start.
  package mutating func reopen(start: StartPoint?) -> StartPoint? {
    let behind = self.furthestBehind
    var points = self.stores.indices.map { self.stores[$0].reopen() }
    for store in self.stores.indices where self.isAhead(store, of: behind) {
      self.stores[store].passBy(distance: self.distance(from: behind, to: store))
    }
    // Stores with the same events may know different keepalives; the newest is valid for all.
    for store in self.stores.indices where !self.isAhead(store, of: behind) {
      guard case .after(let newer)? = points[store] else { continue }
      if case .after(let known)? = points[behind], !known.isCertainlyBefore(newer) { continue }
      points[behind] = points[store]
    }
    if let point = points[behind] { return point }
    guard start == nil || start == .latest || start == .managed,
      let first = self.stores.compactMap(\.first).first
    else { return start }
    // The first event of another store shows where "latest" was then.
    self.stores[behind].seek(first)
    return .earliest
  }

  /// Begins a new epoch in every store, because the stored positions are no longer usable.
  package mutating func beginEpoch() {
    let next = self.epoch + 1
    for store in self.stores.indices { self.stores[store].begin(epoch: next) }
  }

  /// Judges the next event of the stream.
  ///
  /// - Returns: the stores for which it is new. Call `take` unless the set is empty.
  package mutating func judge(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>,
    recordIDs: UnsafeBufferPointer<UInt8>
  ) throws(PassedPositionError) -> StoreSet {
    var recipients = StoreSet()
    for store in self.stores.indices {
      let verdict = try self.stores[store].judge(
        replayID: replayID, eventID: eventID, recordIDs: recordIDs)
      if verdict == .new { recipients.insert(store) }
    }
    return recipients
  }

  /// Whether an event's recipients disagree on its epoch or ordinal. If so, call `align` before
  /// taking it.
  package func disagree(_ recipients: StoreSet) -> Bool {
    guard let first = self.stores.indices.first(where: recipients.contains) else { return false }
    return self.stores.indices.contains {
      recipients.contains($0)
        && (self.stores[$0].epoch, self.stores[$0].ordinal)
          != (self.stores[first].epoch, self.stores[first].ordinal)
    }
  }

  /// The stores that take the next events without a judgement: all of them, if whatever comes is new
  /// for each and has the same epoch and ordinal in each. Nil if that is not certain.
  package var certainRecipients: StoreSet? {
    var recipients = StoreSet()
    for store in self.stores.indices {
      guard self.stores[store].isCurrent, self.stores[store].epoch == self.stores[0].epoch,
        self.stores[store].ordinal == self.stores[0].ordinal
      else { return nil }
      recipients.insert(store)
    }
    return recipients
  }

  /// Makes every store count from 0 in a new epoch, without losing its place in the stream.
  package mutating func align() {
    let next = self.epoch + 1
    for store in self.stores.indices { self.stores[store].renumber(epoch: next) }
  }

  /// The number of rows in an open group that has become too large to keep; nil if there is none.
  package var tooLargeGroup: Int? {
    for store in self.stores.indices
    where self.stores[store].openGroupByteCount > OpenGroup.maxByteCount {
      return self.stores[store].openGroupRowCount
    }
    return nil
  }

  /// Counts an event as taken by its recipients.
  ///
  /// - Returns: its place in the epoch.
  package mutating func take(
    for recipients: StoreSet, replayID: UnsafeBufferPointer<UInt8>,
    eventID: UnsafeBufferPointer<UInt8>, recordIDs: UnsafeBufferPointer<UInt8>
  ) -> Int64 {
    var ordinal: Int64 = 0
    for store in self.stores.indices where recipients.contains(store) {
      ordinal = self.stores[store].take(
        replayID: replayID, eventID: eventID, recordIDs: recordIDs)
    }
    return ordinal
  }

  /// Counts events of a batch as taken by every store, and sets their ordinals. Call this only while
  /// there are `certainRecipients`.
  package mutating func take(_ events: Range<Int>, of batch: RecordBatch) {
    var ordinal = self.stores[0].ordinal
    for index in events {
      batch.events[index].ordinal = ordinal
      ordinal += 1
    }
    for store in self.stores.indices { self.stores[store].take(events, of: batch) }
  }

  /// The epoch of the events that the recipients take.
  package func epoch(of recipients: StoreSet) -> Int {
    self.stores.indices.first(where: recipients.contains).map { self.stores[$0].epoch }
      ?? self.epoch
  }

  package mutating func endResponse(
    replayID: ReplayID, eventID: [UInt8], confirmedAt: Int64, newestCommit: Int64? = nil
  ) {
    for store in self.stores.indices {
      self.stores[store].endResponse(
        replayID: replayID, eventID: eventID, confirmedAt: confirmedAt, newestCommit: newestCommit)
    }
  }

  package mutating func keepalive(
    _ latest: ReplayID, now: Int64, completeThrough: Int64? = nil
  ) {
    for store in self.stores.indices {
      self.stores[store].keepalive(latest, now: now, completeThrough: completeThrough)
    }
  }

  package mutating func prove(completeThrough time: Int64) {
    for store in self.stores.indices { self.stores[store].prove(completeThrough: time) }
  }

  /// The store for which the stream is resumed.
  package var furthestBehind: Int {
    var behind = 0
    for store in self.stores.indices.dropFirst() where self.isAhead(behind, of: store) {
      behind = store
    }
    return behind
  }

  /// The number of events that one store has taken and another one behind it has not.
  private func distance(from behind: Int, to ahead: Int) -> Int64 {
    // Each epoch counts from 0.
    self.stores[ahead].epoch == self.stores[behind].epoch
      ? self.stores[ahead].ordinal - self.stores[behind].ordinal : self.stores[ahead].ordinal
  }

  private func isAhead(_ store: Int, of other: Int) -> Bool {
    (self.stores[store].epoch, self.stores[store].ordinal)
      > (self.stores[other].epoch, self.stores[other].ordinal)
  }
}
