import ArgumentParser
import Glibc
import Logging

/// `pubsub-etl run`: exports what the pipeline file says.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Run a pipeline: export events until caught up, or follow.")

  @OptionGroup var options: RunOptions

  func run() async throws {
    let configuration = try self.options.pipeline.loadOrExit()
    let code = await Self.execute(configuration, self.options)
    if code != .success { throw code.error }
  }

  private static func execute(
    _ configuration: PipelineConfiguration, _ options: RunOptions
  ) async -> ExitCode {
    let console = ErrorConsole()
    let logger = Logger.console(
      console, level: options.effectiveLogLevel, format: options.log.logFormat,
      hiding: configuration.secrets)
    let destination: ReportDestination?
    do throws(ReportDestination.Failure) {
      destination = try options.report.map { path throws(ReportDestination.Failure) in
        try ReportDestination(path)
      }
    } catch {
      logger.error("\(error)")
      return .output
    }
    let run = PipelineRun(
      configuration, options: options, logger: logger,
      progress: LiveProgress(console: console, secrets: configuration.secrets))
    await run.execute()
    var report = run.report
    report.exitCode = report.exitCode(failingOn: configuration.run.failOn)
    // One that was turned away is no run of the pipeline: the record is that of the other.
    if report.reason != "already_running" {
      do {
        try LastRun.store(
          report, processID: getpid(), in: configuration.statePaths, hiding: configuration.secrets)
      } catch {
        // What makes an output fail often makes the record fail too, and has been told.
        if report.exitCode != .output {
          logger.warning("the record of this run for 'status' is missing: \(error)")
        }
      }
    }
    if let destination {
      do throws(ReportDestination.Failure) {
        try destination.write(PrintableText(json: report.json, hiding: configuration.secrets))
      } catch {
        logger.error("\(error)")
        return report.exitCode == .success ? .output : report.exitCode
      }
    }
    return report.exitCode
  }
}
