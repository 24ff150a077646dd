internal import Checkpoint
import JSON
import Pipeline

/// Where a run begins, from what earlier runs have stored in checkpoint, files and databases.
extension PipelineRun {
  /// Determines and stores the positions of the checkpoint and of each sink that keeps its own.
  func startingPositions(
    _ document: CheckpointDocument?, _ sinks: OpenSinks, _ context: SinkContext
  ) throws -> [[String: TopicPosition]] {
    let (checkpoint, resetTopics) = try self.positions(document, sinks)
    let topics = self.configuration.source.topics.map(\.name)
    var found: [StartingPositions.Keeper] = []
    for (settings, keeper) in sinks.keepers {
      let stored = try keeper.storedPositions(
        isKnown: document?.sinks[settings.name] != nil && !self.options.recovery.acceptReset,
        context)
      if let takeover = keeper.takeover(by: context.owner) {
        try CheckpointJournal.append(
          self.configuration.statePaths, command: "run --take-over", topic: nil,
          old: takeover.old, new: takeover.new, clock: self.clock)
      }
      found.append(
        StartingPositions.Keeper(
          name: settings.name, stored: stored.map { $0.filter { topics.contains($0.key) } },
          newestEpoch: stored == nil ? try keeper.newestEpoch(ofTopics: topics) : nil,
          start: settings.start))
    }
    let positions = try StartingPositions(
      topics: topics, checkpoint: checkpoint, resetTopics: resetTopics,
      knownSinks: document.map { Array($0.sinks.keys) },
      checkpointed: sinks.checkpointed.map { ($0.settings.name, $0.settings.start) },
      keepers: found, acceptsReset: self.options.recovery.acceptReset)
    for topic in positions.resetTopics.sorted() {
      try CheckpointJournal.append(
        self.configuration.statePaths, command: "run --accept-reset", topic: topic,
        old: document?.topics[topic]?.json ?? nil, new: positions.checkpoint[topic]?.json ?? nil,
        clock: self.clock)
    }
    for (index, place) in found.enumerated() where place.stored == nil {
      try sinks.keepers[index].sink.begin(at: positions.keepers[index], context)
    }
    return [positions.checkpoint] + positions.keepers
  }

  /// The stored positions, and the topics whose files an accepted reset keeps. The newest epoch of
  /// these files is their position.
  private func positions(
    _ document: CheckpointDocument?, _ sinks: OpenSinks
  ) throws -> ([String: TopicPosition], reset: Set<String>) {
    var positions: [String: TopicPosition] = [:]
    var reset: Set<String> = []
    for topic in self.configuration.source.topics {
      positions[topic.name] = document?.topics[topic.name]
      guard let newest = sinks.lastExported(ofTopic: topic.name) else { continue }
      if let known = positions[topic.name],
        (known.epoch, known.nextOrdinal) > (newest.epoch, newest.ordinal)
      {
        continue
      }
      guard self.options.recovery.acceptReset else {
        throw RunFailure(
          olderCheckpoint: self.configuration, topic: topic.name, newest: newest.replayID)
      }
      let known = positions[topic.name]
      positions[topic.name] = TopicPosition(
        beginningEpoch: max(newest.epoch, known?.epoch ?? 0), holes: known?.holes ?? 0)
      reset.insert(topic.name)
    }
    return (positions, reset)
  }
}

extension RunFailure {
  /// - Parameter newest: the replay ID of the topic's newest exported event.
  init(olderCheckpoint configuration: PipelineConfiguration, topic: String, newest: String) {
    self.init(
      .lostState,
      "\(topic): the files contain events up to replay ID \(newest), but the checkpoint is older; "
        + "put back the newest checkpoint; or move it away and run "
        + "'\(configuration.command("checkpoint restore", "--from-manifest"))'; or begin a new epoch "
        + "with 'run --accept-reset'")
  }
}
