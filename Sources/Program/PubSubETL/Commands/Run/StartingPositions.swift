import Pipeline

/// Decides the position of each store when a run begins: the checkpoint with its files, and each
/// sink that keeps its own position.
///
/// Stores that a crash has left at different positions stay there; the runner brings them together.
/// This type decides which stores are new, which have lost their position, and which have to follow
/// a new epoch.
struct StartingPositions: Equatable {
  /// A sink that keeps its own position.
  struct Keeper {
    var name: String
    /// Nil if it has no position.
    var stored: [String: TopicPosition]?
    /// The newest epoch among its rows; set only while `stored` is nil.
    var newestEpoch: Int?
    var start: SinkStart?
  }

  /// Positions in the checkpoint, by topic.
  private(set) var checkpoint: [String: TopicPosition]
  /// Positions of each sink that keeps its own.
  private(set) var keepers: [[String: TopicPosition]]
  /// Topics that begin a new epoch because the user has accepted the loss of a position.
  private(set) var resetTopics: Set<String>

  /// - Parameters:
  ///   - checkpoint: positions by topic, after the check of files.
  ///   - resetTopics: topics whose files have lost their position, which the user has accepted.
  ///   - knownSinks: names that the checkpoint knows; nil without a checkpoint.
  ///   - checkpointed: the sinks whose state the checkpoint holds, with their `start`.
  /// - Throws: `RunFailure` (65) for a lost position, (78) for a new sink that does not say where it
  ///   begins.
  init(
    topics: [String], checkpoint: [String: TopicPosition], resetTopics: Set<String> = [],
    knownSinks: [String]?, checkpointed: [(name: String, start: SinkStart?)], keepers: [Keeper],
    acceptsReset: Bool
  ) throws {
    var checkpoint = checkpoint
    var reset = resetTopics
    let stored = keepers.compactMap(\.stored)
    if knownSinks == nil, !checkpointed.isEmpty, Self.haveBegun(stored) {
      let begun = topics.filter { topic in
        checkpoint[topic] == nil && Self.haveBegun(stored.map { $0.filter { $0.key == topic } })
      }
      if let sink = checkpointed.first(where: { $0.start != .now }), !begun.isEmpty {
        // The state directory is gone, and there are no files of these topics.
        guard acceptsReset else { throw Self.newSink(sink.name, ", or has lost it") }
        reset.formUnion(begun)
      } else {
        for topic in begun { checkpoint[topic] = Self.furthestBehind(stored, topic) }
      }
    }
    if checkpointed.isEmpty {
      // The checkpoint has only dead letters, which were durable before any database moved past
      // them.
      for topic in topics {
        guard let behind = Self.furthestBehind(stored, topic, ofAll: true) else { continue }
        if checkpoint[topic].map({ Self.isBefore($0, behind) }) ?? true {
          checkpoint[topic] = behind
        }
      }
    }
    var own = keepers.map(\.stored)
    for topic in topics { Self.followBegunEpoch(of: topic, in: checkpoint, &own) }
    if let knownSinks {
      for (index, keeper) in keepers.enumerated()
      where keeper.start == .now && !knownSinks.contains(keeper.name) {
        // The sink was removed and added again, and may lack too much to go back for.
        if let stored = own[index], Self.isOutOfReach(stored, of: checkpoint) { own[index] = nil }
      }
    }

    let known = [checkpoint] + own.compactMap { $0 }
    for (index, keeper) in keepers.enumerated() where own[index] == nil {
      if keeper.newestEpoch != nil || knownSinks?.contains(keeper.name) == true {
        guard acceptsReset else { throw Self.lost(keeper) }
        reset.formUnion(topics)
        own[index] = [:]
        continue
      }
      // A new sink among others needs `start: now`, and begins at their position.
      guard keeper.start == .now || !Self.haveBegun(known) else {
        throw Self.newSink(keeper.name)
      }
      own[index] = Dictionary(
        uniqueKeysWithValues: topics.compactMap { topic in
          Self.furthestBehind(known, topic).map { (topic, $0) }
        })
    }
    self.checkpoint = checkpoint
    self.keepers = own.map { $0 ?? [:] }
    self.resetTopics = reset
    self.reset(reset, newestRows: keepers.compactMap(\.newestEpoch).max() ?? 0)
  }

  /// Begins an epoch higher than that of any store or row, and keeps the number of holes.
  private mutating func reset(_ topics: Set<String>, newestRows: Int) {
    let all = [self.checkpoint] + self.keepers
    let newest = all.flatMap { $0.values.map(\.epoch) }.max() ?? 0
    for topic in topics {
      let holes = all.compactMap { $0[topic]?.holes }.max() ?? 0
      let begun = TopicPosition(beginningEpoch: max(newest, newestRows) + 1, holes: holes)
      self.checkpoint[topic] = begun
      for keeper in self.keepers.indices { self.keepers[keeper][topic] = begun }
    }
  }

  /// Applies an epoch that has begun only in the checkpoint, by hand or because the replay ID was
  /// no longer usable, to the other stores. They would learn of it with their next commit, which a
  /// crash may have prevented.
  private static func followBegunEpoch(
    of topic: String, in checkpoint: [String: TopicPosition],
    _ keepers: inout [[String: TopicPosition]?]
  ) {
    guard let begun = checkpoint[topic], begun.nextOrdinal == 0, begun.lastEvent == nil,
      keepers.allSatisfy({ ($0?[topic]?.epoch ?? 0) < begun.epoch })
    else { return }
    for keeper in keepers.indices where keepers[keeper]?[topic] != nil {
      keepers[keeper]?[topic] = begun
    }
  }

  /// An empty position counts as none; a first run without events leaves one.
  private static func haveBegun(_ stores: [[String: TopicPosition]]) -> Bool {
    stores.contains { store in
      store.values.contains { $0.isResumable || $0.nextOrdinal > 0 || $0.epoch > 1 }
    }
  }

  /// - Parameter ofAll: the result is nil if any store lacks the topic.
  private static func furthestBehind(
    _ stores: [[String: TopicPosition]], _ topic: String, ofAll: Bool = false
  ) -> TopicPosition? {
    let found = stores.compactMap { $0[topic] }
    if ofAll, found.count < stores.count { return nil }
    return found.min(by: Self.isBefore)
  }

  private static func isBefore(_ one: TopicPosition, _ other: TopicPosition) -> Bool {
    (one.epoch, one.nextOrdinal) < (other.epoch, other.nextOrdinal)
  }

  /// Whether the store lacks more than the others could skip.
  private static func isOutOfReach(
    _ store: [String: TopicPosition], of other: [String: TopicPosition]
  ) -> Bool {
    other.contains { topic, position in
      guard let behind = store[topic] else { return position.nextOrdinal > 0 }
      return behind.epoch != position.epoch
        || position.nextOrdinal - behind.nextOrdinal > StreamCursor.passingLimit
    }
  }

  private static func lost(_ keeper: Keeper) -> RunFailure {
    RunFailure(
      .lostState,
      "the database of sink '\(keeper.name)' has no position of this pipeline, but "
        + (keeper.newestEpoch != nil ? "rows of its topics" : "had one before")
        + "; if 'url' or 'schema' of the sink was changed, change it back, or copy the tables there "
        + "with '_etl_checkpoint'. Or put that table back. Or begin a new epoch with "
        + "'run --accept-reset': it reads the topics from 'start' and skips rows that exist already"
    )
  }

  private static func newSink(_ name: String, _ addition: String = "") -> RunFailure {
    RunFailure(
      .newSink,
      "sink '\(name)' has no position\(addition), and the pipeline has run without it; add "
        + "\"start\": \"now\" to the sink to begin after the pipeline's position; for earlier "
        + "events, give it a pipeline of its own"
        + (addition.isEmpty ? "" : ", or begin a new epoch of all sinks with 'run --accept-reset'"))
  }
}
