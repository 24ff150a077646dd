import Pipeline

/// Where each store stands when a run begins: the checkpoint with its files, and each database.
///
/// Stores that a crash has left apart are left so, since the runner brings them together. What is
/// decided here is who is new, and who has lost its position.
struct StartingPositions: Equatable {
  /// A sink that keeps its own position.
  struct Database {
    var name: String
    /// Nil when the database has no position of the sink.
    var stored: [String: TopicPosition]?
    /// Of the rows in its tables, when there is no position.
    var newestEpoch: Int?
    var start: SinkStart?
  }

  /// First the checkpoint, then the databases.
  private(set) var stores: [[String: TopicPosition]]

  /// - Parameters:
  ///   - checkpoint: by topic, after the check of files; nil without a checkpoint.
  ///   - knownSinks: names that the checkpoint knows; nil without a checkpoint.
  ///   - newFileSinks: files sinks, with their `start`, if the checkpoint does not know them.
  /// - Throws: `RunFailure` (65) for a lost position, (78) for a new sink that does not say where it
  ///   begins.
  init(
    topics: [String], checkpoint: [String: TopicPosition], knownSinks: [String]?,
    fileSinks: [(name: String, start: SinkStart?)], databases: [Database], acceptsReset: Bool
  ) throws {
    var isReset = checkpoint.contains { $0.value.epoch > 1 && !$0.value.isResumable }
    var lowest = checkpoint
    for database in databases {
      if let stored = database.stored { lowest = Self.furthestBehind(lowest, stored) }
    }
    var stores = [checkpoint]
    for database in databases {
      if let stored = database.stored {
        stores.append(stored)
      } else if database.newestEpoch != nil || knownSinks?.contains(database.name) == true {
        guard acceptsReset else {
          throw RunFailure(
            .data, reason: "lost_state",
            "the database of sink '\(database.name)' has no position of this pipeline, but "
              + (database.newestEpoch != nil ? "rows of its topics" : "had one before")
              + ": put back '_etl_checkpoint'; or begin a new epoch with 'run --accept-reset', which "
              + "reads the topics from 'start' on and leaves out the rows that are there")
        }
        isReset = true
        stores.append([:])
      } else {
        // New beside others: it begins where they stand, as it has said it would.
        guard lowest.isEmpty || database.start == .now else {
          throw Self.newSink(database.name)
        }
        stores.append(lowest)
      }
    }
    if knownSinks == nil, databases.contains(where: { $0.stored?.isEmpty == false }) {
      for sink in fileSinks where sink.start != .now && checkpoint.isEmpty {
        throw Self.newSink(sink.name)
      }
      if checkpoint.isEmpty { stores[0] = lowest }
    }
    if fileSinks.isEmpty {
      // Dead letters alone: those before a database's position were durable before it.
      for topic in topics {
        let others = stores.dropFirst().compactMap { $0[topic] }
        guard others.count == databases.count, let behind = others.min(by: Self.isBefore) else {
          continue
        }
        if stores[0][topic].map({ Self.isBefore($0, behind) }) ?? true { stores[0][topic] = behind }
      }
    }
    if isReset {
      let newest = (stores.flatMap { $0.values.map(\.epoch) } + databases.compactMap(\.newestEpoch))
        .max()
      for topic in topics {
        let begun = TopicPosition(beginningEpoch: (newest ?? 0) + 1)
        for store in stores.indices { stores[store][topic] = begun }
      }
    }
    self.stores = stores
  }

  private static func newSink(_ name: String) -> RunFailure {
    RunFailure(
      .configuration, reason: "new_sink",
      "sink '\(name)' has no position, and the pipeline has gone on without it; with \"start\": "
        + "\"now\" it begins after the pipeline's position; for earlier events give it a pipeline of "
        + "its own")
  }

  private static func isBefore(_ one: TopicPosition, _ other: TopicPosition) -> Bool {
    (one.epoch, one.nextOrdinal) < (other.epoch, other.nextOrdinal)
  }

  private static func furthestBehind(
    _ one: [String: TopicPosition], _ other: [String: TopicPosition]
  ) -> [String: TopicPosition] {
    one.merging(other) { Self.isBefore($1, $0) ? $1 : $0 }
  }
}
