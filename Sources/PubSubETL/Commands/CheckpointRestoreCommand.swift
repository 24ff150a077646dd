import ArgumentParser
import JSON
import Pipeline

/// `pubsub-etl checkpoint restore FILE --from-manifest`: a lost checkpoint, made again from what the
/// files sinks know.
struct CheckpointRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Makes a lost checkpoint again from the manifests of the files.",
    discussion: """
      The next run goes on after the last finished file. What files in progress held is read \
      again. Where that cannot be done without exporting events a second time, a new epoch begins, \
      and the command says which events it repeats. Positions older than 72 h cannot be used: the \
      service does not know them any more. The change is noted in <name>.journal.ndjson beside \
      the checkpoint.

      """ + CheckpointCommand.exitCodes)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "From _manifest.ndjson in the directories of the files sinks.")
  var fromManifest = false

  @Flag(help: "Make the change without asking.")
  var yes = false

  func validate() throws {
    guard self.fromManifest else {
      throw ValidationError("--from-manifest is expected: it is what a checkpoint is made from")
    }
  }

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    try CheckpointCommand.reporting {
      let path = configuration.statePaths.checkpoint
      guard !FilePath.exists(path) else {
        throw RunFailure(
          .data, reason: "has_checkpoint",
          "\(path) exists: move it away first if it is damaged or too old; 'checkpoint set' changes "
            + "the position of one topic")
      }
      // Before the state directory is made, which the lock needs.
      _ = try CheckpointRestore(configuration)
      let store = try CheckpointChange.open(configuration)
      let restore = try CheckpointRestore(configuration)
      StandardStream.output.write(restore.text)
      try CheckpointChange.confirm(self.yes)
      try CheckpointJournal.append(
        configuration.statePaths, command: "checkpoint restore --from-manifest", topic: nil,
        old: nil,
        new: JSONValue(
          .object(
            restore.document.topics.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value) })
        ))
      try store.save(restore.document)
    }
  }
}
