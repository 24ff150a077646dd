import ArgumentParser
import Clocks
import Pipeline

/// `pubsub-etl erase FILE --entity E --record ID…`: the values of some records are forgotten.
struct EraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "erase",
    abstract: "Erases the values of records from files, tables and dead letters.",
    discussion: """
      For the request of a person to be forgotten. History rows and lines keep what they say about \
      each event: when, by whom, which fields. Their values are cleared. Current rows become those \
      of deleted records. Finished files with such lines are replaced by new ones. Dead letters \
      about the records lose their payloads. From then on, runs leave out all rows of the records, \
      so later events, snapshots and repairs bring nothing back. This cannot be undone. Erase the \
      records in Salesforce first. Needs no login. If the command was interrupted, run it again. \
      Backups, and copies that others have made, are not changed.
      Exit codes: 0 done, also if there was nothing to clear; 64 command line, an ID or an object \
      that does not fit, or not confirmed; 65 a file or a dead letter could not be searched, or the \
      checkpoint does not fit the files; 69 a database is unavailable, 77 it refuses access; 74 a \
      file cannot be written; 75 a run is in progress, or others use the files or tables; 78 \
      mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl erase crm.json --entity Contact --record 003Dp0000004C9h
        pubsub-etl erase crm.json --entity Lead --record 00QDp0000004C9h --dry-run
      """)

  @OptionGroup var options: PipelineOptions

  @Option(help: "The object of the records, for example Contact.")
  var entity: String

  @Option(
    name: .customLong("record"),
    help: ArgumentHelp(
      "The ID of a record, with 15 or 18 characters; may be repeated.", valueName: "ID"),
    transform: { text in
      do throws(RecordID.Fault) {
        return try RecordID(text)
      } catch {
        throw ValidationError("'\(text)' is not a record ID: \(error.reason)")
      }
    })
  var records: [RecordID]

  @Flag(help: "Only show what would be cleared. Takes no lock, changes nothing.")
  var dryRun = false

  @Flag(help: "Erase without asking for confirmation.")
  var yes = false

  @Flag(help: "Print JSON.")
  var json = false

  func validate() throws {
    guard !self.records.isEmpty else { throw ValidationError("give at least one --record ID") }
  }

  func run() throws {
    let configuration = try self.options.loadWithoutLoginOrExit()
    let secrets = configuration.secrets
    let hasFaults: Bool
    do {
      let erasure = try RecordErasure(
        self.records, of: self.entity, configuration, clock: ProcessClock())
      let report =
        try self.dryRun
        ? erasure.examine() : erasure.execute { try self.confirm($0, hiding: secrets) }
      try StandardStream.print(
        self.json
          ? PrintableText(json: report.json, hiding: secrets)
          : PrintableText(lines: report.text, hiding: secrets))
      for fault in report.faults {
        StandardStream.tell(PrintableText(line: fault, hiding: secrets))
      }
      hasFaults = !report.faults.isEmpty
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    if hasFaults { throw ExitCode.data.error }
  }

  private func confirm(_ question: String, hiding secrets: SecretMask) throws {
    guard !self.yes else { return }
    if StandardStream.confirm(.unended(question, hiding: secrets)) { return }
    throw RunFailure(
      .notConfirmed, "nothing was erased; add --yes to erase without being asked")
  }
}
