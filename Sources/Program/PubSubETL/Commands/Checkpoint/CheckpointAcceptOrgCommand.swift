import ArgumentParser
internal import Checkpoint
import Clocks
import Pipeline
import SalesforceAuth

/// `pubsub-etl checkpoint accept-org FILE`: the pipeline continues with the org of its login.
struct CheckpointAcceptOrgCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-org",
    abstract: "Accepts another org, or a stream that has started again.",
    discussion: """
      Use it after a run stopped with 65 for one of two reasons. Either the login is for another org \
      than the stored positions, for example because a sandbox was refreshed. Or the stream is not \
      the one that was exported. Logs in, and begins a new epoch of that org for every topic: the \
      next run begins where 'start' of the pipeline file says. Files and rows of the old org stay; new files have the new epoch in their \
      names. Until all records are read again the tables lack what the org held before, and _freshness \
      counts a missing range. The change is recorded in <name>.journal.ndjson next to the checkpoint and \
      in _etl_journal of each database. Safe to run again if it was interrupted.

      """ + CheckpointCommand.exitCodes
        + """
           Also 64 where no records can be read; 69 and 77 for the login.

        EXAMPLES:
          pubsub-etl checkpoint accept-org opps.json              only its events
          pubsub-etl checkpoint accept-org opps.json --snapshot   all its records, too
        """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "The next run reads every record of the pipeline's objects again.")
  var snapshot = false

  @Flag(help: "Make the change without asking for confirmation.")
  var yes = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    do {
      let entities = try self.entities(configuration)
      for topic in configuration.source.topics
      where topic.start == nil && configuration.source.managed == nil {
        throw RunFailure(
          .noStart, code: .configuration,
          "\(topic.name): the pipeline file has no 'start', so the new epoch has no starting position; add "
            + "\"start\": \"earliest\" or \"latest\" to the source")
      }
      let org = try await OrgConnection.open(
        configuration.source.org, secrets: configuration.secrets, clock: ProcessClock()
      ) { try await $0.credentials.provider.token().organizationID }
      let databases = try SinkDatabases(configuration, readsOrgs: true)
      // Before the state directory is made, which the lock needs.
      _ = try OrgChange(
        configuration, to: org, stored: try FileCheckpointStore.peek(configuration.statePaths),
        databases, entities: entities)
      let store = try CheckpointChange.open(configuration)
      let change = try OrgChange(
        configuration, to: org, stored: try store.load(), databases, entities: entities)
      let owner = try PipelineAssembly(configuration: configuration, clock: ProcessClock()).owner(
        store)
      try databases.checkLeases(owner)
      try StandardStream.print(
        PrintableText(lines: change.text(databases), hiding: configuration.secrets))
      try CheckpointChange.confirm(self.yes, hiding: configuration.secrets)
      try change.store(store, databases, configuration, owner: owner)
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
  }

  /// Objects whose records are to be read again.
  private func entities(_ configuration: PipelineConfiguration) throws -> [String] {
    guard self.snapshot else { return [] }
    let entities =
      configuration.source.snapshotObjects.map(\.entity) + configuration.source.lookups.objects
    guard !entities.isEmpty, configuration.sinks.contains(where: \.takesReads) else {
      throw RunFailure(
        .noObjects,
        "--snapshot: the pipeline has no objects or no sinks whose records can be read; for objects on "
          + "channels, list them in source.snapshot.objects")
    }
    guard configuration.source.snapshot.mode != .never else {
      throw RunFailure(
        .noObjects,
        "--snapshot: source.snapshot.mode is \"never\", so no run reads records; set it to \"initial\", or "
          + "leave it out")
    }
    return entities
  }
}
