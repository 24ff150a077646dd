import ArgumentParser
import JSON
import Logging

/// Which pipeline: the options of every command that reads a pipeline file.
struct PipelineOptions: ParsableArguments {
  @Argument(help: "Pipeline file, for example pipelines/opps.json.", completion: .file())
  var pipeline: String

  @OptionGroup var changes: PipelineChanges

  /// The effective pipeline configuration. Throws `ConfigurationError`, or `ValidationError` for a
  /// `--set` that `validate` has not seen.
  ///
  /// - Parameter adapt: changes the document before its variables are replaced.
  func load(
    environment: Environment = .process, adapt: (inout JSONValue) -> Void = { _ in }
  ) throws -> PipelineConfiguration {
    try PipelineConfiguration.load(
      file: self.pipeline, root: self.changes.root, overrides: self.changes.overrides(),
      environment: environment, adapt: adapt)
  }
}

/// What the command line changes in a pipeline file.
struct PipelineChanges: ParsableArguments {
  @Option(
    name: .customLong("set"),
    help: ArgumentHelp(
      "Replace a value of the file, for example source.topic=/event/X__e. Parsed as JSON if "
        + "possible, otherwise taken as a string. May be given several times.",
      valueName: "path=value"))
  var sets: [String] = []

  @Option(
    help: ArgumentHelp(
      "Base directory for relative paths in the file; default: the file's directory. The path "
        + "of an org file always stays relative to the file. Can also be set with "
        + "PUBSUB_ETL_ROOT.",
      valueName: "dir"),
    completion: .directory)
  var root: String?

  func validate() throws {
    _ = try self.overrides()
    try FilePath.validate(self.root, of: "--root")
  }

  /// Read here and not by a `transform`, whose errors repeat the argument, secrets included.
  func overrides() throws -> [ConfigurationOverride] {
    try self.sets.map { argument in
      do throws(ConfigurationOverride.ParseError) {
        return try ConfigurationOverride(argument)
      } catch {
        throw ValidationError("\(error)")
      }
    }
  }
}

/// The level and format of the log.
struct LogOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Lowest level of messages shown: trace, debug, info, notice, warning, error, critical; "
        + "default: warning, or info with --follow. info: logged in, connected, subscribed, "
        + "schema fetched, committed and records read (once a minute), file finished, token "
        + "renewed, caught up, waiting for a position, stopping; debug: also each request and response, with credit, "
        + "status, RPC ID and duration.",
      valueName: "level"),
    transform: {
      guard let level = Logger.Level(rawValue: $0) else {
        let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValidationError("unknown level '\($0)'; known: \(known)")
      }
      return level
    })
  var logLevel: Logger.Level?

  @Option(
    help: ArgumentHelp(
      "Format of log lines: text, json or journald (with a leading priority); default: text, "
        + "or journald if standard error is systemd's journal.", valueName: "format"))
  var logFormat: LogFormat?

  var effectiveFormat: LogFormat { self.logFormat ?? .standard() }
}

extension LogFormat: ExpressibleByArgument {}

/// When a run ends, in addition to what the file says or instead of it.
struct RunLimits: ParsableArguments {
  @Flag(help: "Export what is available, then exit (overrides run.until).")
  var untilCaughtUp = false

  @Flag(help: "Continue until stopped by a signal (overrides run.until).")
  var follow = false

  @Option(
    help: ArgumentHelp(
      "Stop once this many events have come from all topics together, in addition to run.until. Events that other topics were asked for are exported too, at most this many for each topic.",
      valueName: "count"))
  var maxEvents: Int?

  @Option(
    help: ArgumentHelp(
      "Stop after this time, for example 10m, in addition to run.until.", valueName: "time"),
    transform: {
      guard let duration = JSONReader.duration($0), duration > .zero else {
        throw ValidationError("expected a time such as 90s, 10m or 1h30m")
      }
      return duration
    })
  var maxDuration: Duration?

  func validate() throws {
    if self.follow, self.untilCaughtUp {
      throw ValidationError("--follow and --until-caught-up cannot be used together")
    }
    if let maxEvents, maxEvents < 1 {
      throw ValidationError("--max-events must be at least 1")
    }
  }

  /// When the run ends, by the flags or else by the file.
  func until(_ configuration: RunConfiguration) -> RunConfiguration.Until {
    if self.follow { return .forever }
    return self.untilCaughtUp ? .caughtUp : configuration.until
  }
}

/// What a run may do although something is lost or belongs to another run.
struct RecoveryOptions: ParsableArguments {
  @Flag(
    help:
      "Begin a new epoch even if files show that an earlier run exported here and its checkpoint is lost."
  )
  var acceptReset = false

  @Flag(
    help:
      "Continue without finished files that are missing or changed. Create dropped tables again, without rows that cannot be rebuilt."
  )
  var acceptMissing = false

  @Flag(
    help:
      "Take over a database's positions from a run on another host that has ended, and tables from another pipeline or topic that wrote to them."
  )
  var takeOver = false
}

/// The options of `run` that override or limit the file.
struct RunOptions: ParsableArguments {
  @OptionGroup(title: "When to end") var limits: RunLimits
  @OptionGroup(title: "After a loss") var recovery: RecoveryOptions
  @OptionGroup(title: "Messages") var log: LogOptions

  @Option(
    help: ArgumentHelp(
      "Write a JSON report of the run to a file, a FIFO or a device. With - it goes to standard "
        + "output, unless a sink writes there. An earlier report is replaced; any other file, and a "
        + "symbolic link, is refused.",
      valueName: "file"),
    completion: .file())
  var report: String?

  func validate() throws { try FilePath.validate(self.report, of: "--report") }

  /// The level of the log: warnings and errors alone unless asked for more, so that cron has
  /// nothing to mail after a success.
  var effectiveLogLevel: Logger.Level {
    self.log.logLevel ?? (self.limits.follow ? .info : .warning)
  }

  /// Whether cron mails what is printed: it has started this run, and nobody has asked for a log.
  var isMailed: Bool { self.log.logLevel == nil && CronAncestor.isThere }
}

extension FilePath {
  /// - Throws: `ValidationError` for a path of the command line that only a shell would replace.
  static func validate(_ path: String?, of option: String) throws {
    guard let mistake = path.flatMap({ self.mistake(in: $0) }) else { return }
    throw ValidationError("\(option): \(mistake)")
  }
}
