internal import Bytes
internal import Checkpoint
import FileSink
import JSON
import Pipeline

/// A new checkpoint for a pipeline whose own is lost, made from the manifests of its sinks.
struct CheckpointRestore {
  var document: CheckpointDocument
  /// What happens to each topic, for people: topic and lines.
  var topics: [(topic: String, outcome: PositionRestore.Outcome)]

  /// Positions that begin an epoch, which the databases have to begin as well: a store in an older
  /// epoch counts as the one that is behind.
  var newEpochs: [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    for (topic, outcome) in self.topics {
      if case .readsAgain(let position, _) = outcome { positions[topic] = position }
    }
    return positions
  }

  /// Reads the manifests; takes no lock, writes nothing.
  ///
  /// - Parameter databases: of the pipeline, whose positions are not lost.
  /// - Throws: `RunFailure` (65) without a manifest of this pipeline, or with those of several orgs.
  init(
    _ configuration: PipelineConfiguration, _ databases: SinkDatabases? = nil,
    now: Int64 = UTCTime.now()
  ) throws {
    var sinks: [[ExportedFile]] = []
    var states: [String: SinkState] = [:]
    for files in configuration.fileSinks {
      sinks.append(try Self.files(.records, in: files.directory, configuration))
      states[files.name] = SinkState(directory: files.directory)
    }
    let letters = try Self.files(
      .deadLetters, in: configuration.deadLetter.directory, configuration)
    let orgs = Set(sinks.flatMap { $0 }.map(\.org))
    guard let org = orgs.first else {
      throw RunFailure(
        .noManifest,
        "no sink of pipeline '\(configuration.name)' has a _manifest.ndjson that lists "
          + "finished files of the pipeline; there is nothing to restore from, and a first run "
          + "would repeat nothing")
    }
    guard orgs.count == 1 else {
      throw RunFailure(
        .severalOrgs,
        "the manifests list files of several orgs (\(orgs.sorted().joined(separator: ", "))); "
          + "set source.org.org_id (18 characters) to choose one")
    }
    let retainedSince = UTCTime.timestamp(milliseconds: now - PipelineStatus.retention)
    self.topics = configuration.source.topics.map { topic in
      let restore = PositionRestore(
        topic: topic.name, isChannel: topic.isChannel,
        sinks: sinks.map { $0.filter { $0.topic == topic.name } },
        deadLetters: letters.filter { $0.topic == topic.name && $0.org == org },
        retainedSince: retainedSince)
      let epoch = databases?.highestEpoch(ofTopic: topic.name) ?? 0
      return (topic.name, restore.outcome.beginning(after: epoch))
    }
    states.merge(databases?.documentStates ?? [:]) { own, _ in own }
    var positions: [String: TopicPosition] = [:]
    for (topic, outcome) in self.topics { positions[topic] = outcome.position }
    self.document = CheckpointDocument(
      pipeline: configuration.name, org: org, topics: positions, sinks: states)
  }

  private static func files(
    _ kind: ExportedFile.Kind, in directory: String, _ configuration: PipelineConfiguration
  ) throws -> [ExportedFile] {
    var files: [ExportedFile] = []
    let org = configuration.source.org.orgID
    // Compaction joins the ranges of files, and which range lacks events decides.
    try ExportedFile.visit(kind, in: directory, pipeline: configuration.name, .written) { file in
      if org == nil || file.org == org { files.append(file) }
    }
    return files
  }

  /// Lines of a label and a value, each ended.
  var text: String {
    var lines: [(label: String, value: String)] = []
    for (topic, outcome) in self.topics {
      lines.append(("topic", topic))
      if let position = outcome.position {
        lines += PipelineStatus.lines(position).map { ("", $0) }
      }
      switch outcome {
      case .goesOn: lines.append(("", "the next run resumes after the last finished file"))
      case .readsAgain(_, let why): lines.append(("", "attention: \(why)"))
      case .nothing: lines.append(("", "nothing exported: starts where the pipeline file says"))
      }
    }
    return PipelineStatus.text(lines)
  }

  /// What happens to the databases, likewise.
  func text(_ databases: SinkDatabases) -> String {
    var lines = databases.lines
    for entry in databases.entries {
      lines.append(
        (
          "",
          entry.state == nil
            ? "\(entry.name): with \"start\": \"now\" it begins after the pipeline's position"
            : "\(entry.name): keeps its position"
              + (self.newEpochs.isEmpty
                ? ""
                : ", but also begins the new epochs; the history skips rows that it already has")
        ))
    }
    return PipelineStatus.text(lines)
  }
}

extension PositionRestore.Outcome {
  /// The same with a new epoch, if it begins one, that comes after another.
  func beginning(after epoch: Int) -> Self {
    guard case .readsAgain(var position, let why) = self, position.epoch <= epoch else {
      return self
    }
    let wanted = position.epoch
    position.epoch = epoch + 1
    return .readsAgain(
      position, "\(why) (epoch \(epoch + 1) instead of \(wanted): a database is at \(epoch))")
  }

  var position: TopicPosition? {
    switch self {
    case .goesOn(let position), .readsAgain(let position, _): position
    case .nothing: nil
    }
  }
}
