import ArgumentParser
import PostgresClient
import PostgresSink

/// `pubsub-etl refold FILE`: current rows rebuilt from history.
struct RefoldCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refold",
    abstract: "Rebuilds the current rows of a database from its history.",
    discussion: """
      Use it for records whose events did not all arrive in order, or to verify the current \
      table: if it is right, nothing changes. Needs a postgres sink of mode both, and no login to \
      Salesforce. Safe while a run is in progress: the run waits while a batch of records is \
      rebuilt. Records without history stay as they are. If the command fails half-way, run it \
      again. A current table that was dropped is created again.
      Exit codes: 0 done; 64 command line, or no such sink or entity; 65 a dropped table cannot \
      be rebuilt; 69 database unavailable; 74 its disk is full; 77 it refuses access; 78 mistakes \
      in the file, or tables that do not fit.
      """)

  @OptionGroup var options: PipelineOptions

  @Option(help: "Name of the sink; default: every postgres sink of mode both.")
  var sink: String?

  @Option(help: "Name of an object, for example Opportunity; default: all that have tables.")
  var entity: String?

  @Option(
    help: ArgumentHelp(
      "ID of a record, as in column id; default: all. May be given several times.",
      valueName: "id"))
  var record: [String] = []

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    do {
      for sink in try self.sinks(configuration) { try self.refold(sink, of: configuration) }
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
  }

  private func sinks(_ configuration: PipelineConfiguration) throws -> [PostgresSettings] {
    let all = configuration.postgresSinks
    if let sink, !all.contains(where: { $0.name == sink }) {
      let known = all.map(\.name).joined(separator: ", ")
      throw RunFailure(
        .usage, reason: "unknown_sink",
        "the pipeline file has no postgres sink '\(sink)'"
          + (known.isEmpty ? "" : "; it has: \(known)"))
    }
    let sinks = all.filter { self.sink == nil || $0.name == self.sink }
    let usable = sinks.filter { $0.sink.mode == .both }
    guard !usable.isEmpty else {
      throw RunFailure(
        .usage, reason: "no_history",
        sinks.isEmpty
          ? "pipeline '\(configuration.name)' has no postgres sink"
          : "a sink of mode both is needed: '\(sinks[0].name)' has mode "
            + "\(sinks[0].sink.mode.rawValue), so there is no history beside the current rows")
    }
    return usable
  }

  private func refold(
    _ sink: PostgresSettings, of configuration: PipelineConfiguration
  ) throws {
    let secrets = configuration.secrets
    let connection = try PostgresConnection(sink.sink.connection)
    let catalog = TableCatalog(sink.sink, feeder: configuration.feeder(sink))
    // Tables that are not what they were would be compared with a part of themselves.
    for finding in try catalog.survey(over: connection) {
      guard let disposition = finding.disposition, self.entity ?? finding.entity == finding.entity
      else { continue }
      throw PostgresError(disposition, finding.message)
    }
    for change in try catalog.restore(acceptsMissing: false, over: connection) {
      StandardStream.error.write(
        PrintableText(line: "sink '\(sink.name)': \(change)", hiding: secrets))
    }
    let unfilled = try catalog.unfilledTables(over: connection)
    let all = try catalog.storedTables(over: connection)
    let chosen = all.filter { self.entity == nil || $0.entity == self.entity }
    if let entity, chosen.isEmpty {
      let known = all.map(\.entity).joined(separator: ", ")
      throw RunFailure(
        .usage, reason: "unknown_entity",
        "sink '\(sink.name)' has no tables of \(entity)"
          + (known.isEmpty ? "; it has no tables yet" : "; it has those of \(known)"))
    }
    try self.say([("sink", sink.name + (chosen.isEmpty ? ": no tables yet" : ""))], secrets)
    var checked = 0
    for tables in chosen {
      let refold = Refold(
        history: tables.history, current: tables.current, delete: sink.sink.delete)
      let counts =
        self.record.isEmpty
        ? try refold.refoldAll(over: connection)
        : try refold.refoldAlone(records: self.record, over: connection)
      if self.record.isEmpty, unfilled.contains(tables) {
        try catalog.noteFilled(tables.current, over: connection)
      }
      checked += counts.checked
      try self.say(
        [
          (
            "entity",
            "\(tables.entity): \(Phrase.count(counts.checked, "record")) checked, "
              + "\(ProgressLine.grouped(Int64(counts.changed))) changed"
          )
        ], secrets)
    }
    let asked = Set(self.record).count
    if checked < asked {
      StandardStream.error.write(
        PrintableText(
          line: "sink '\(sink.name)': \(asked - checked) of \(asked) records have no history; IDs "
            + "are those of column id, 18 characters", hiding: secrets))
    }
  }

  private func say(_ lines: [(label: String, value: String)], _ secrets: SecretMask) throws {
    let text = PrintableText(lines: PipelineStatus.text(lines), hiding: secrets)
    guard StandardStream.output.write(text) else {
      throw RunFailure(.output, reason: "output", "standard output cannot be written")
    }
  }
}
