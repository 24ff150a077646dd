import ArgumentParser
internal import Checkpoint
import Clocks
import JSON
import Pipeline

/// `pubsub-etl checkpoint set FILE --topic T …`: another position, by decision of the user.
struct CheckpointSetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Sets the position of a topic: the next run begins a new epoch there.",
    discussion: """
      Events that are read again go to other files, which have the new epoch in their names; \
      (_event_id, _record_id) identifies them. If the new position is later than the old one, the \
      events in between are not exported. The change is recorded in <name>.journal.ndjson next to \
      the checkpoint. The databases of postgres sinks get the same position, in one transaction \
      with a line in _etl_journal; the history skips the rows that it already has.

      """ + CheckpointCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl checkpoint set leads.json --topic /data/LeadChangeEvent --earliest
          pubsub-etl checkpoint set leads.json --topic /data/LeadChangeEvent --latest
        """)

  @OptionGroup var options: PipelineOptions

  @Option(help: "The topic, as in the pipeline file.")
  var topic: String

  @Option(
    help: ArgumentHelp(
      "Resume after this replay ID, in hexadecimal digits.", valueName: "hex"),
    transform: {
      guard let id = ReplayID(hex: $0) else {
        throw ValidationError("expected an even number of hexadecimal digits")
      }
      return id
    })
  var replayID: ReplayID?

  @Flag(help: "Begin with the oldest event that the service keeps.")
  var earliest = false

  @Flag(help: "Begin with events published after the next run starts.")
  var latest = false

  @Flag(help: "Make the change without asking for confirmation.")
  var yes = false

  func validate() throws {
    let count = [self.replayID != nil, self.earliest, self.latest].count { $0 }
    guard count == 1 else {
      throw ValidationError("expected exactly one of --replay-id, --earliest and --latest")
    }
  }

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    try CheckpointCommand.reporting(hiding: configuration.secrets) {
      guard configuration.source.topics.contains(where: { $0.name == self.topic }) else {
        let known = configuration.source.topics.map(\.name).joined(separator: ", ")
        throw RunFailure(
          .unknownTopic,
          "topic \(self.topic) is not in the pipeline file; it has: \(known)")
      }
      // This comes first, so that no state is made where none was.
      let databases = try SinkDatabases(configuration)
      // Without other sinks the checkpoint is only a copy of what the databases hold.
      let isCopy = !configuration.needsCheckpoint && databases.hasPositions
      if !isCopy { _ = try FileCheckpointStore.stored(configuration) }
      let store = try CheckpointChange.open(configuration)
      let stored = try store.load()
      guard stored != nil || isCopy else {
        throw RunFailure(.noCheckpoint, "\(store.path) has just been removed")
      }
      var document = stored ?? databases.document(configuration)
      let owner = try PipelineAssembly(configuration: configuration, clock: ProcessClock()).owner(
        store)
      try databases.checkOrg(document.org)
      try databases.checkLeases(owner)
      let exportedEpochs = try configuration.exportedEpochs(ofTopic: self.topic)
      let change = CheckpointChange.set(
        &document, topic: self.topic, resume: self.replayID, start: self.start,
        exportedEpoch: max(
          exportedEpochs.max() ?? 0, databases.highestEpoch(ofTopic: self.topic)))
      var lines: [(label: String, value: String)] = [("topic", self.topic)]
      func describe(_ label: String, _ position: TopicPosition?) {
        let texts: [String] = position.map { PipelineStatus.lines($0) } ?? ["nothing"]
        lines.append((label, texts[0]))
        for text in texts.dropFirst() { lines.append(("", text)) }
      }
      describe("stored", change.old)
      for entry in databases.entries {
        lines.append(
          (
            "database",
            entry.name
              + (entry.positions == nil
                ? ": has no position, unchanged" : ": gets the same position")
          ))
        if let position = entry.positions?[self.topic], position != change.old {
          describe("", position)
        }
      }
      describe("new", change.new)
      try StandardStream.print(
        PrintableText(lines: PipelineStatus.text(lines), hiding: configuration.secrets))
      try CheckpointChange.confirm(self.yes, hiding: configuration.secrets)
      let command = "checkpoint set \(self.argument)"
      try databases.set([self.topic: change.new], owner: owner, command: command)
      try CheckpointJournal.append(
        configuration.statePaths, command: command, topic: self.topic,
        old: change.old.map(\.json) ?? nil, new: change.new.json)
      if stored != nil { try store.save(document) }
      try databases.commit()
    }
  }

  private var start: TopicPosition.Start? {
    self.earliest ? .earliest : self.latest ? .latest : nil
  }

  private var argument: String {
    self.replayID.map { "--replay-id \($0)" } ?? "--\(self.start?.rawValue ?? "")"
  }
}
