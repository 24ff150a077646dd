import ArgumentParser
internal import Bytes
internal import Checkpoint
import JSON
import Pipeline

/// `pubsub-etl checkpoint show FILE`: the positions as stored.
struct CheckpointShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the stored positions. Safe while a run is in progress.",
    discussion: """
      Shows the positions in the checkpoint and those that the databases of postgres sinks store \
      with the rows.

      """ + CheckpointCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl checkpoint show opps.json          for people
          pubsub-etl checkpoint show opps.json --json   for programs
        """)

  @OptionGroup var options: PipelineOptions

  @Flag(
    help:
      "Print the stored checkpoint as JSON; with postgres sinks, it also has a member 'databases'.")
  var json = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    try CheckpointCommand.reporting(hiding: configuration.secrets) {
      let paths = configuration.statePaths
      let document = try FileCheckpointStore.peek(paths)
      let databases: Result<SinkDatabases, any Error> = Result {
        try SinkDatabases(configuration)
      }
      if document == nil, (try? databases.get())?.hasPositions != true {
        // A database that does not answer comes first.
        _ = try databases.get()
        throw FileCheckpointStore.missing(configuration)
      }
      let secrets = configuration.secrets
      let text =
        self.json
        ? PrintableText(
          json: Self.json(document, try? databases.get(), configuration), hiding: secrets)
        : PrintableText(
          lines: PipelineStatus.text(
            (document.map(Self.lines) ?? [("checkpoint", "\(paths.checkpoint) does not exist")])
              + ((try? databases.get())?.lines ?? [])), hiding: secrets)
      try StandardStream.print(text)
      _ = try databases.get()
    }
  }

  private static func json(
    _ document: CheckpointDocument?, _ databases: SinkDatabases?,
    _ configuration: PipelineConfiguration
  ) -> JSONValue {
    var members = document?.json.members ?? []
    if !configuration.postgresSinks.isEmpty {
      members.append(JSONMember("databases", databases?.json ?? nil))
    }
    return JSONValue(.object(members))
  }

  private static func lines(
    _ document: CheckpointDocument
  ) -> [(label: String, value: String)] {
    var lines: [(label: String, value: String)] = [
      ("pipeline", document.pipeline), ("org", document.org),
      ("stored at", UTCTime.timestamp(milliseconds: document.savedAt)),
    ]
    for (topic, position) in document.topics.sorted(by: { $0.key < $1.key }) {
      lines.append(("topic", topic))
      lines += PipelineStatus.lines(position).map { ("", $0) }
      if let confirmed = position.confirmedAt {
        lines.append(("", "confirmed \(UTCTime.timestamp(milliseconds: confirmed))"))
      }
    }
    for sink in document.sinks.keys.sorted() { lines.append(("sink", sink)) }
    return lines
  }
}

extension FileCheckpointStore {
  /// The checkpoint of a pipeline, read without the lock.
  ///
  /// - Throws: `RunFailure` (65) when there is none.
  static func stored(_ configuration: PipelineConfiguration) throws -> CheckpointDocument {
    guard let document = try Self.peek(configuration.statePaths) else {
      throw Self.missing(configuration)
    }
    return document
  }

  static func missing(_ configuration: PipelineConfiguration) -> RunFailure {
    RunFailure(
      .noCheckpoint,
      "\(configuration.statePaths.checkpoint) does not exist; either the pipeline has never "
        + "run, or its checkpoint is lost"
        + (configuration.fileSinks.isEmpty
          ? "" : " ('checkpoint restore --from-manifest' restores it from the files)"))
  }
}
