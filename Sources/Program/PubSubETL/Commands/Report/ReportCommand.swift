import ArgumentParser
import Bytes
import JSON

/// `pubsub-etl report FILE --html OUT`: the history of a pipeline as a page.
struct ReportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Writes the history and the state of a pipeline as an HTML page.",
    discussion: """
      One file, which opens without a network and runs no script: events, bytes, lag, run times, \
      failures, retries, allowance, files and tables, gaps, and the verdicts of 'verify'. Each chart \
      has its values as a table. The page has what 'runs --json' lists, and what 'status' prints. \
      Takes no lock and does not log in to Salesforce.
      Exit codes: 0 written; 64 command line, or a file that must not be replaced; 74 the page \
      cannot be written, or the ledger cannot be read; 78 mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl report opps.json --html opps.html
        pubsub-etl report opps.json --html - | ssh web 'cat > opps.html'
      """)

  @OptionGroup var options: PipelineOptions

  @Option(
    help: ArgumentHelp(
      "File for the page; it is replaced if it is an earlier page. Use - for standard output.",
      valueName: "file"),
    completion: .file(extensions: ["html"]))
  var html: String

  func validate() throws {
    if self.html != "-" { try FilePath.validate(self.html, of: "--html") }
  }

  func run() async throws {
    let configuration = try self.options.loadWithoutLoginOrExit()
    let secrets = configuration.secrets
    func fail(_ message: String, _ code: ExitCode) -> any Error {
      StandardStream.tell(PrintableText(line: message, hiding: secrets))
      return code.error
    }
    let destination: ReportDestination
    do throws(ReportDestination.Failure) {
      destination = try ReportDestination(self.html)
    } catch {
      throw fail("\(error)", .output)
    }
    do throws(ReportDestination.Failure) {
      try destination.check(against: configuration, mayReplace: .page)
    } catch {
      throw fail("\(error)", .usage)
    }
    let page: ReportPage
    do throws(RunFailure) {
      page = try ReportPage.read(configuration, now: UTCTime.now())
    } catch {
      throw error.reported(hiding: secrets)
    }
    do throws(ReportDestination.Failure) {
      try destination.write(PrintableText(page: page.html(hiding: secrets)))
    } catch {
      throw fail("\(error)", .output)
    }
  }
}

extension ReportPage {
  /// - Parameter now: milliseconds since 1970.
  /// - Throws: `RunFailure` if there is a ledger that cannot be read.
  static func read(
    _ configuration: PipelineConfiguration, now: Int64
  ) throws(RunFailure) -> ReportPage {
    let history = try RunHistory.read(configuration.statePaths)
    let state: State
    do {
      let status = try PipelineStatus.read(configuration, maxAge: nil, now: now)
      state = .known(
        status.text, problems: status.problems.map { "\($0.kind): \($0.message)" })
    } catch {
      // The page is about what happened, which is known.
      state = .unknown(RunFailure(error).message)
    }
    return ReportPage(
      pipeline: configuration.name, figures: RunFigures(history.items),
      remark: history.remark(configuration.statePaths), state: state, madeAt: now)
  }
}
