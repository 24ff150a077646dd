import ArgumentParser

/// `pubsub-etl rebuild FILE`: current rows rebuilt from history.
struct RefoldCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rebuild",
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

      EXAMPLES:
        pubsub-etl rebuild opps-postgres.json                        all tables
        pubsub-etl rebuild opps-postgres.json --entity Opportunity   one of them
      """,
    aliases: ["refold"])

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
      let secrets = configuration.secrets
      let selection = RefoldSelection(entity: self.entity, records: self.record)
      for sink in try self.sinks(configuration) {
        try sink.refold(
          selection, of: configuration, say: { try self.say($0, secrets) },
          remark: { StandardStream.tell(PrintableText(line: $0, hiding: secrets)) })
      }
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
  }

  private func sinks(_ configuration: PipelineConfiguration) throws -> [any RefoldingSink] {
    let all = configuration.sinks.compactMap { $0 as? any RefoldingSink }
    if let sink, !all.contains(where: { $0.name == sink }) {
      let known = all.map(\.name).joined(separator: ", ")
      throw RunFailure(
        .unknownSink,
        "the pipeline file has no postgres sink '\(sink)'"
          + (known.isEmpty ? "" : "; it has: \(known)"))
    }
    let sinks = all.filter { self.sink == nil || $0.name == self.sink }
    let usable = sinks.filter { $0.refoldObstacle == nil }
    guard !usable.isEmpty else {
      throw RunFailure(
        .noHistory,
        sinks.first?.refoldObstacle ?? "pipeline '\(configuration.name)' has no postgres sink")
    }
    return usable
  }

  private func say(_ lines: [(label: String, value: String)], _ secrets: SecretMask) throws {
    let text = PrintableText(lines: PipelineStatus.text(lines), hiding: secrets)
    try StandardStream.print(text)
  }
}
