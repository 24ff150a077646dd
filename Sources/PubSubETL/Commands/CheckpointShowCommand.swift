import ArgumentParser
import JSON
import Pipeline

/// `pubsub-etl checkpoint show FILE`: the positions as stored.
struct CheckpointShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the stored positions. Safe beside a run.",
    discussion: CheckpointCommand.exitCodes)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Print the stored checkpoint as JSON, as it is.")
  var json = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    try CheckpointCommand.reporting {
      let document = try FileCheckpointStore.stored(configuration)
      let text = self.json ? document.json.text(.pretty) + "\n" : try Self.text(document)
      guard StandardStream.output.write(text) else {
        throw RunFailure(.output, reason: "output", "standard output cannot be written")
      }
    }
  }

  private static func text(_ document: CheckpointDocument) throws -> String {
    var lines: [(label: String, value: String)] = [
      ("pipeline", document.pipeline), ("org", document.org),
      ("stored at", UTCTime.timestamp(milliseconds: document.savedAt)),
    ]
    for (topic, json) in document.topics.sorted(by: { $0.key < $1.key }) {
      lines.append(("topic", topic))
      let position = try TopicPosition(json: json, topic: topic)
      lines += PipelineStatus.lines(position).map { ("", $0) }
      if let confirmed = position.confirmedAt {
        lines.append(("", "confirmed \(UTCTime.timestamp(milliseconds: confirmed))"))
      }
    }
    for sink in document.sinks.keys.sorted() { lines.append(("sink", sink)) }
    return PipelineStatus.text(lines)
  }
}

extension FileCheckpointStore {
  /// The checkpoint of a pipeline, read without the lock.
  ///
  /// - Throws: `RunFailure` (65) when there is none.
  static func stored(_ configuration: PipelineConfiguration) throws -> CheckpointDocument {
    guard let document = try Self.peek(configuration.statePaths) else {
      throw RunFailure(
        .data, reason: "no_checkpoint",
        "\(configuration.statePaths.checkpoint) does not exist: the pipeline never ran, or its "
          + "checkpoint is lost ('checkpoint restore --from-manifest' makes one from the files)")
    }
    return document
  }
}
