internal import Checkpoint
import FileSink
import JSON
import Pipeline
import PostgresSink

/// Where a run begins, from what earlier runs have stored in checkpoint, files and databases.
extension PipelineRun {
  /// A pipeline that has been given another name has lost its position: it would export everything
  /// again, or with `"start": "latest"` leave events out.
  func checkIsNew(_ sinks: [FileSink]) throws {
    guard !self.options.acceptReset else { return }
    let topics = self.configuration.source.topics.map(\.name)
    for sink in sinks where sink.history.isEmpty {
      guard let other = sink.history.others.first(where: { topics.contains($0.topic) }) else {
        continue
      }
      let name = self.configuration.name
      throw RunFailure(
        .data, reason: "other_pipeline",
        "\(sink.configuration.directory) has files of pipeline '\(other.pipeline)' with events of "
          + "\(other.topic), and pipeline '\(name)' has never run: if '\(other.pipeline)' was renamed, "
          + "give it its old name back, with which its position is stored; if '\(name)' is another "
          + "pipeline, give it another directory, or begin here with 'run --accept-reset'")
    }
  }

  /// Positions of the checkpoint and of each database; makes their rows there.
  func startingPositions(
    _ document: CheckpointDocument?, _ succession: SinkSuccession?, sinks: [FileSink],
    databases: [PostgresSink], owner: LeaseOwner
  ) throws -> [[String: TopicPosition]] {
    let (checkpoint, resetTopics) = try self.positions(document, sinks: sinks)
    let topics = self.configuration.source.topics.map(\.name)
    let found = try zip(self.configuration.postgresSinks, databases).map { settings, sink in
      let stored = try sink.open(
        isKnown: document?.sinks[settings.name] != nil && !self.options.acceptReset)
      if let former = sink.formerLease {
        try CheckpointJournal.append(
          self.configuration.statePaths, command: "run --take-over", topic: nil,
          old: [
            "sink": .string(settings.name), "owner": .string(former.owner),
            "fence": .integer(former.fence),
          ],
          new: [
            "sink": .string(settings.name), "owner": .string(owner.text),
            "fence": .integer(former.fence + 1),
          ])
      }
      return StartingPositions.Database(
        name: settings.name, stored: stored.map { $0.filter { topics.contains($0.key) } },
        newestEpoch: stored == nil ? try sink.newestEpoch(ofTopics: topics) : nil,
        start: settings.start)
    }
    let positions = try StartingPositions(
      topics: topics, checkpoint: checkpoint, resetTopics: resetTopics,
      knownSinks: document.map { Array($0.sinks.keys) },
      fileSinks: self.configuration.fileSinks.map { ($0.name, $0.start) }, databases: found,
      acceptsReset: self.options.acceptReset)
    for topic in positions.resetTopics.sorted() {
      try CheckpointJournal.append(
        self.configuration.statePaths, command: "run --accept-reset", topic: topic,
        old: document?.topics[topic] ?? nil, new: positions.stores[0][topic]?.json ?? nil)
    }
    for (index, place) in found.enumerated() where place.stored == nil {
      try databases[index].open(creating: positions.stores[index + 1])
    }
    return positions.stores
  }

  func checkOrg(_ document: CheckpointDocument?, org: String) throws {
    guard let document else { return }
    guard document.org == org else {
      throw RunFailure(
        .configuration, reason: "other_org",
        "the checkpoint of pipeline '\(self.configuration.name)' belongs to org \(document.org), "
          + "the login is for \(org): give the pipeline another name, or check the login")
    }
  }

  /// Stored positions, and the topics whose files an accepted reset leaves in place: the newest
  /// epoch of the files is their position.
  private func positions(
    _ document: CheckpointDocument?, sinks: [FileSink]
  ) throws -> ([String: TopicPosition], reset: Set<String>) {
    var positions: [String: TopicPosition] = [:]
    var reset: Set<String> = []
    for topic in self.configuration.source.topics {
      if let json = document?.topics[topic.name] {
        positions[topic.name] = try TopicPosition(json: json, topic: topic.name)
      }
      let exported = sinks.compactMap { $0.history.topics[topic.name] }
      let newest = exported.max {
        ($0.epoch, $0.lastOrdinal) < ($1.epoch, $1.lastOrdinal)
      }
      guard let newest else { continue }
      if let known = positions[topic.name],
        (known.epoch, known.nextOrdinal) > (newest.epoch, newest.lastOrdinal)
      {
        continue
      }
      guard self.options.acceptReset else {
        throw RunFailure(
          .data, reason: "lost_state",
          "\(topic.name): the files go up to replay ID \(newest.lastReplayID) but the checkpoint "
            + "is older: put back the newest checkpoint; or move it away and run 'pubsub-etl "
            + "checkpoint restore \(self.configuration.file) --from-manifest'; or begin a new epoch "
            + "with 'run --accept-reset'")
      }
      let known = positions[topic.name]
      positions[topic.name] = TopicPosition(
        beginningEpoch: max(newest.epoch, known?.epoch ?? 0), holes: known?.holes ?? 0)
      reset.insert(topic.name)
    }
    return (positions, reset)
  }
}
