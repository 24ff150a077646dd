import ArgumentParser
internal import Clocks
import Glibc
import JSON
import Logging

/// `pubsub-etl run`: exports what the pipeline file says.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Runs a pipeline: exports events until caught up, or follows.",
    discussion: """
      Without a terminal, a successful run prints nothing but the rows of a stdout sink. If the service or a database cannot be \
      reached, the first failure is reported and the run retries for retry.give_up_after, or without \
      end with --follow. On a terminal, live \
      lines show each topic and sink, and a summary remains. A run that finds nothing new \
      takes run.quiet plus 2 s.
      With --topic and --to, no pipeline file is needed: --print prints the file that they stand for, \
      and other commands such as 'status' need it.
      With --dry-run, shows a few real events before and after each stage, and what each sink would \
      get. The output is text on a terminal and NDJSON otherwise. Nothing is stored; the exit code is 65 \
      if an event would be a dead letter.
      Exit codes: 0 done, or --max-duration while records arrived; 64 command line; 65 data or position: an unusable replay ID, lost \
      state, too many dead letters, or anything named in run.fail_on; 69 service, login or \
      database unavailable; 70 a defect of this program; 74 files, checkpoint or report cannot be \
      written; 75 try again: another run, quota, --max-duration or a first signal before the stream \
      was caught up, no first position; 77 login, topic or database refused; 78 mistakes in the pipeline \
      file, or a TLS identity; 129, 130, 143 second SIGHUP, SIGINT, SIGTERM.

      EXAMPLES:
        pubsub-etl run opps.json                     export what is new, then exit
        pubsub-etl run --topic /data/ContactChangeEvent --to out   without a file
        pubsub-etl run opps.json --follow            export changes as they arrive
        pubsub-etl run opps.json --dry-run           show 20 events, store nothing
        pubsub-etl run opps.json --max-duration 9m   from cron, every 10 minutes
      """)

  @OptionGroup(title: "Pipeline") var pipeline: RunPipelineOptions
  @OptionGroup var options: RunOptions
  @OptionGroup(title: "Dry run") var dryRun: DryRunOptions

  func validate() throws { try self.dryRun.check(with: self.options) }

  func run(_ clockOfRun: ClockOfRun) async throws {
    if self.pipeline.print { return try self.printDraft() }
    let configuration = try await self.load()
    let clock: ProcessClock
    do throws(ClockRefusal) {
      clock = try clockOfRun(OrgPlaces(configuration.source.org))
    } catch {
      StandardStream.tell(PrintableText(line: error.message, hiding: configuration.secrets))
      throw ExitCode.usage.error
    }
    let code =
      if self.dryRun.dryRun {
        await self.rehearse(configuration, clock)
      } else {
        await Self.execute(configuration, self.options, purpose: .export, clock: clock)
      }
    if code != .success { throw code.error }
  }

  /// The pipeline as it is meant. A schedule that meets the same mistakes again does not repeat them.
  private func load() async throws -> PipelineConfiguration {
    guard !self.dryRun.dryRun else { return try self.pipeline.loadOrExit() }
    do {
      return try self.pipeline.load()
    } catch let error as ConfigurationError {
      await IncidentWatch.misconfigured(
        self.pipeline.incidentPlace(), error, isMailed: self.options.isMailed
      ) { StandardStream.tell(error.printable) }
      throw error.exitCode.error
    } catch let failure as RunFailure {
      throw failure.reported(hiding: SecretMask())
    }
  }

  /// Prints the pipeline file that the options stand for.
  private func printDraft() throws {
    // `validate` has refused `--print` with a file.
    guard let document = try PipelineOptions.orExit({ try self.pipeline.document() }) else {
      return
    }
    try StandardStream.print(PrintableText(json: document, .folded, hiding: SecretMask()))
  }

  /// Shows what a run would do.
  private func rehearse(
    _ configuration: PipelineConfiguration, _ clock: ProcessClock
  ) async -> ExitCode {
    var logger = Logger.console(
      ErrorConsole(), level: self.options.effectiveLogLevel,
      format: self.options.log.effectiveFormat, hiding: configuration.secrets, clock: clock)
    logger[metadataKey: "pipeline"] = "\(configuration.name)"
    let isText = StandardStream.output.isTerminal && !self.dryRun.json
    return await DryRun(
      configuration, options: self.options, dryRun: self.dryRun, clock: clock, logger: logger,
      output: DryRunOutput(isText ? .text(isColored: true) : .json, hiding: configuration.secrets)
    ).execute()
  }

  static func execute(
    _ configuration: PipelineConfiguration, _ options: RunOptions, purpose: RunPurpose,
    clock: ProcessClock
  ) async -> ExitCode {
    let console = ErrorConsole()
    var logger = Logger.console(
      console, level: options.effectiveLogLevel, format: options.log.effectiveFormat,
      hiding: configuration.secrets, clock: clock)
    logger[metadataKey: "pipeline"] = "\(configuration.name)"
    let destination: ReportDestination?
    do throws(ReportDestination.Failure) {
      destination = try options.report.map { path throws(ReportDestination.Failure) in
        try ReportDestination(path)
      }
    } catch {
      logger.error("\(error)")
      return .output
    }
    do throws(ReportDestination.Failure) {
      try destination?.check(against: configuration)
    } catch {
      logger.error("\(error)")
      return .usage
    }
    if destination?.isStandardOutput == true,
      let sink = configuration.sinks.first(where: \.takesStandardOutput)
    {
      logger.error(
        """
        sink '\(sink.name)' writes its rows to standard output, so the report cannot go there too; \
        give a file with --report FILE
        """)
      return .usage
    }
    let interruption = Interruption(
      deadline: options.limits.maxDuration.map { clock.now + $0 }, clock: clock)
    let work = Task { [logger] in
      let run = PipelineRun(
        configuration, options: options, purpose: purpose, interruption: interruption,
        clock: clock, logger: logger,
        progress: LiveProgress(
          console: console, secrets: configuration.secrets, clock: clock,
          hasRows: configuration.sinks.contains(where: \.takesStandardOutput)))
      await run.execute()
      return (run.report, run.hasLock)
    }
    // Until the run reads, a signal cancels whatever it waits for.
    interruption.respond(work.cancel)
    let (report, hadLock) = await work.value
    // Without the lock it waited for another run, whose record this is.
    if hadLock || ![.alreadyRunning, .signal].contains(EndReason(rawValue: report.reason)) {
      do {
        try LastRun.store(
          report, processID: getpid(), in: configuration.statePaths, hiding: configuration.secrets)
      } catch {
        // What makes an output fail often makes the record fail too, and was reported.
        if report.exitCode != .output {
          logger.warning("the record of this run for 'status' could not be stored: \(error)")
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
