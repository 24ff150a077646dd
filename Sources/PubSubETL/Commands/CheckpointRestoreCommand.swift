import ArgumentParser
internal import Checkpoint
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
      A database holds its own position, which is not lost with the checkpoint and stays as it is: \
      the next run feeds files and database from the older of both, and neither gets an event \
      twice. Where a new epoch begins the database begins it too, and leaves out the rows it holds.

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
    try CheckpointCommand.reporting(hiding: configuration.secrets) {
      let path = configuration.statePaths.checkpoint
      guard !FilePath.exists(path) else {
        throw RunFailure(
          .data, reason: "has_checkpoint",
          "\(path) exists: move it away first if it is damaged or too old; 'checkpoint set' changes "
            + "the position of one topic")
      }
      let databases = try SinkDatabases(configuration)
      if configuration.fileSinks.isEmpty {
        throw RunFailure(
          .data, reason: "no_manifest",
          databases.hasPositions
            ? "there is nothing to restore: the positions are in the database, and 'run' goes on "
              + "from them ('checkpoint show' shows them)"
            : "pipeline '\(configuration.name)' has no files sink whose manifest could tell "
              + "positions")
      }
      // Before the state directory is made, which the lock needs.
      _ = try CheckpointRestore(configuration, databases)
      let store = try CheckpointChange.open(configuration)
      let restore = try CheckpointRestore(configuration, databases)
      let owner = try PipelineAssembly(configuration: configuration).owner(store)
      try databases.checkOrg(restore.document.org)
      if !restore.newEpochs.isEmpty { try databases.checkLeases(owner) }
      StandardStream.output.write(
        PrintableText(
          lines: restore.text + restore.text(databases), hiding: configuration.secrets))
      try CheckpointChange.confirm(self.yes, hiding: configuration.secrets)
      let command = "checkpoint restore --from-manifest"
      try databases.set(restore.newEpochs, owner: owner, command: command)
      try CheckpointJournal.append(
        configuration.statePaths, command: command, topic: nil,
        old: nil,
        new: JSONValue(
          .object(
            restore.document.topics.sorted { $0.key < $1.key }.map {
              JSONMember($0.key, $0.value.json)
            })
        ))
      try store.save(restore.document)
      if !restore.newEpochs.isEmpty { try databases.commit() }
    }
  }
}
