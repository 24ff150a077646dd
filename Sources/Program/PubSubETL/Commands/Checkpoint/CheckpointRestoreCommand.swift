import ArgumentParser
internal import Checkpoint
import Clocks
import JSON
import Pipeline

/// `pubsub-etl checkpoint restore FILE --from-manifest`: a lost checkpoint, made again from what the
/// files sinks know.
struct CheckpointRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restores a lost checkpoint from the manifests of the files.",
    discussion: """
      The next run resumes after the last finished file and reads again what files in progress \
      held. Where that would export events twice, a new epoch begins, and the command lists the \
      events that it repeats. Positions older than 72 h cannot be used, because the service has \
      forgotten them. The change is recorded in <name>.journal.ndjson next to the checkpoint.
      A database keeps its own position, which is not lost with the checkpoint and does not \
      change: the next run reads from the older of the two, and neither the files nor the \
      database get an event twice. If a new epoch begins, the database begins it too and skips \
      the rows that it already has.

      """ + CheckpointCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl checkpoint restore opps.json --from-manifest
          pubsub-etl checkpoint restore opps.json --from-manifest --yes   do not ask
        """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Restore from _manifest.ndjson in the directories of the files sinks.")
  var fromManifest = false

  @Flag(help: "Make the change without asking for confirmation.")
  var yes = false

  func validate() throws {
    guard self.fromManifest else {
      throw ValidationError("add --from-manifest: the checkpoint is restored from the manifests")
    }
  }

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    try CheckpointCommand.reporting(hiding: configuration.secrets) {
      let path = configuration.statePaths.checkpoint
      guard !FilePath.exists(path) else {
        throw RunFailure(
          .hasCheckpoint,
          "\(path) exists; if it is damaged or too old, move it away first; to change the "
            + "position of one topic, use 'checkpoint set'")
      }
      let databases = try SinkDatabases(configuration)
      if configuration.fileSinks.isEmpty {
        throw RunFailure(
          .noManifest,
          databases.hasPositions
            ? "there is nothing to restore: the positions are in the database, and 'run' "
              + "resumes from them ('checkpoint show' shows them)"
            : "pipeline '\(configuration.name)' has no files sink, so there is no manifest "
              + "to restore positions from")
      }
      // Before the state directory is made, which the lock needs.
      _ = try CheckpointRestore(configuration, databases)
      let store = try CheckpointChange.open(configuration)
      let restore = try CheckpointRestore(configuration, databases)
      let owner = try PipelineAssembly(configuration: configuration, clock: ProcessClock()).owner(
        store)
      try databases.checkOrg(restore.document.org)
      if !restore.newEpochs.isEmpty { try databases.checkLeases(owner) }
      try StandardStream.print(
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
