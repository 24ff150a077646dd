import ArgumentParser
internal import Checkpoint
import JSON

/// `pubsub-etl runs FILE`: what happened in the newest runs.
struct RunsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "runs",
    abstract: "Lists the newest runs and verdicts of 'verify'.",
    discussion: """
      A line per run, the newest last: when it began, how long it took, its exit code and reason, \
      events, records read, dead letters and retries. A run without a report was killed, or the \
      machine went down. Runs that found another one in progress are not listed. Reads the ledger \
      beside the checkpoint, which keeps a few thousand runs. Takes no lock, asks neither Salesforce \
      nor a database, and writes nothing.
      Exit codes: 0 listed; 64 command line; 74 the ledger cannot be read, or standard output \
      cannot be written; 78 mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl runs opps.json                     the newest 20
        pubsub-etl runs opps.json --last 500 --json   for programs
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Print JSON: the lines of the ledger, with all they hold. Times are in UTC.")
  var json = false

  @Option(
    help: ArgumentHelp("Number of runs and verdicts to list; default: 20.", valueName: "n"))
  var last: Int = 20

  func validate() throws {
    guard self.last > 0 else { throw ValidationError("--last takes a number from 1") }
  }

  func run() async throws {
    let configuration = try self.options.loadWithoutLoginOrExit()
    let (secrets, paths) = (configuration.secrets, configuration.statePaths)
    let history: RunHistory
    do throws(RunFailure) {
      history = try RunHistory.read(paths)
    } catch {
      throw error.reported(hiding: secrets)
    }
    if let remark = history.remark(paths) {
      StandardStream.tell(PrintableText(line: remark, hiding: secrets))
    }
    let items = Array(history.items.suffix(self.last))
    let text: PrintableText
    if self.json {
      text = PrintableText(
        json: [
          "pipeline": .string(configuration.name), "damaged_lines": .integer(history.damagedCount),
          "runs": .array(items.map(\.json)),
        ], hiding: secrets)
    } else if items.isEmpty {
      text = PrintableText(line: "no run is recorded in \(paths.directory)", hiding: secrets)
    } else {
      text = PrintableText(lines: RunTable.lines(items), hiding: secrets)
    }
    try StandardStream.print(text)
  }
}
