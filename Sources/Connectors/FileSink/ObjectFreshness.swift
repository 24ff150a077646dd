internal import Bytes
internal import JSON
internal import Pipeline

/// How complete the finished files of an object are.
struct ObjectFreshness: Equatable {
  var entity: String
  var topics: Set<String> = []
  /// Every change committed before this time is in the files; milliseconds since 1970, nil if
  /// unknown, or if not all records have been read yet.
  var completeThrough: Int64?
  /// The number of the topics' epochs that began because a position was unusable.
  var holes = 0
  /// Those that no later snapshot makes up for.
  var missingRanges = 0
  /// Those that wait and that no later snapshot makes up for.
  var deadLetters = 0
  var snapshot: FilePass?
  /// A snapshot was requested and has not begun.
  var isAwaited = false
  /// How often the object, which has no change events, is read.
  var polledEvery: Duration?
  /// When it had last been read; milliseconds since 1970.
  private var polledAt: Int64?
  /// As of when its fields without events are; milliseconds since 1970.
  var refreshedAt: Int64?
  /// Changed records that have not been read, so that it is not known whether they belong to the copy.
  var changedCount = 0

  init(entity: String) { self.entity = entity }

  /// - Parameters:
  ///   - positions: the committed positions, by topic.
  ///   - heldBack: the oldest commit time in unfinished files of the object; nil if it has none.
  mutating func advance(to positions: [String: TopicPosition], heldBack: HeldBack?) {
    let own = self.topics.compactMap { positions[$0] }
    // The topics are no longer exported.
    guard !own.isEmpty else { return }
    self.holes = own.reduce(0) { $0 + $1.holes }
    self.missingRanges = own.reduce(0) { count, position in
      count + FilePass.missingRanges(of: position, since: self.snapshot)
    }
    let isRead = self.snapshot.map { $0.completion != nil } ?? !self.isAwaited
    guard isRead, own.allSatisfy({ $0.completeThrough != nil }) else {
      self.completeThrough = nil
      return
    }
    let through = own.compactMap(\.completeThrough).min()
    switch heldBack {
    case nil: self.completeThrough = through
    case .since(let time): self.completeThrough = through.map { min($0, time) }
    case .unknown: break
    }
  }

  /// Notes how far an object without change events is complete: up to the beginning of its last
  /// complete read, of which all lines are in finished files.
  ///
  /// - Parameter changes: the last complete read of changed records.
  mutating func advance(toReadOfChanges changes: FilePass.Completion?) {
    (self.holes, self.missingRanges) = (0, 0)
    let all = self.snapshot?.completion
    let reads = [all, changes].compactMap { $0 }
    self.completeThrough = all == nil ? nil : reads.map(\.begunAt).max()
    self.polledAt = reads.map(\.finishedAt).max()
  }

  /// Committed events of an object that are not in finished files.
  enum HeldBack: Equatable {
    case since(Int64)
    /// The events have no commit times.
    case unknown
  }

  private var snapshotState: JSONValue {
    if self.isAwaited { return "waiting" }
    switch self.snapshot?.state {
    case nil: return nil
    case .begun: return "waiting"
    case let state?: return .string(state.rawValue)
    }
  }

  /// - Parameter selectsChanges: as `FileSinkConfiguration.selectsChanges`.
  func json(
    pipeline: String, sink: String, lastRun: Int64, selectsChanges: Bool
  ) -> JSONValue {
    func time(_ milliseconds: Int64?) -> JSONValue {
      milliseconds.map { .string(UTCTime.timestamp(milliseconds: $0)) } ?? nil
    }
    func names(_ names: some Sequence<String>) -> JSONValue {
      let sorted = names.sorted().map { JSONValue.string($0) }
      return sorted.isEmpty ? nil : .array(sorted)
    }
    let snapshot = self.snapshot
    return [
      "entity": .string(self.entity), "pipeline": .string(pipeline), "sink": .string(sink),
      "topics": names(self.topics), "complete_through": time(self.completeThrough),
      "last_run": time(lastRun), "holes": .integer(self.holes),
      "missing_ranges": .integer(self.missingRanges),
      "dead_letters": .integer(self.deadLetters),
      "snapshot_at": time(snapshot?.completion?.finishedAt),
      "snapshot_begun_at": time(snapshot?.completion?.begunAt),
      "snapshot_state": self.snapshotState,
      "snapshot_rows": snapshot.map { .integer($0.rowCount) } ?? nil,
      "snapshot_total": snapshot?.total.map { .integer($0) } ?? nil,
      "columns_filling": names(snapshot.map { Array($0.newer.keys) } ?? []),
      "columns_hidden": names(snapshot?.unread ?? []),
      "selects_changes": .boolean(selectsChanges),
      "polled_every_seconds": self.polledEvery.map { .integer($0.components.seconds) } ?? nil,
      "polled_at": time(self.polledAt), "refreshed_at": time(self.refreshedAt),
      "changed_records": .integer(self.changedCount),
    ]
  }

  /// - Parameter json: a line of `_freshness.ndjson`. Its snapshot is in the sink's state.
  init?(json: JSONValue) {
    guard let entity = json["entity"]?.string else { return nil }
    self.entity = entity
    self.topics = Set((json["topics"]?.array ?? []).compactMap(\.string))
    self.completeThrough = json["complete_through"]?.string.flatMap(Self.milliseconds(of:))
    self.holes = json["holes"]?.integer.map { Int($0) } ?? 0
    self.missingRanges = json["missing_ranges"]?.integer.map { Int($0) } ?? 0
  }

  /// - Parameter time: a time as `UTCTime.timestamp` writes it.
  static func milliseconds(of time: String) -> Int64? {
    Array(time.utf8).withUnsafeBytes { UTCTime.timestamp($0) }
  }
}
