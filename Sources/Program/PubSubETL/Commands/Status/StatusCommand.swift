import ArgumentParser
internal import Clocks
import JSON

/// `pubsub-etl status FILE`: how a pipeline stands, without disturbing it.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows positions, files, the last run, and any problems.",
    discussion: """
      The first lines are the verdict: good, catching up, or the problems. Catching up: \
      --max-duration ended the last run before the stream was caught up; the time left follows \
      from how fast that run went through commit times. \
      Reads the state directory, the manifests and, for postgres sinks, the database, whose stale \
      and partial records it counts. Takes no lock, does not log in to Salesforce and needs no \
      variables of the login, writes nothing. Safe while a run is in progress.
      Checks that the newest 100 finished files exist and have the right size; with --verify, \
      reads all files and compares their SHA-256 with the manifest.
      Exit codes, for monitors: 0 all is well; 65 more dead letters are waiting than \
      dead_letter.max allows; 65 the checkpoint or a database's position is lost or damaged; \
      65 finished files are lost or changed; 65 a position was last confirmed more than 48 h ago \
      (the service keeps 72 h); 65 a view lacks the new values of a converted field; 75 never run, the last commit is older than --max-age, \
      or the last run was killed; the exit code of the last run if it failed, does not get closer to \
      the end of the stream, and none is in progress; 69 a database is unavailable, 77 it refuses access; 64 command line, 78 mistakes \
      in the file. If there are several problems, the first one shown counts.

      EXAMPLES:
        pubsub-etl status opps.json                        for people
        pubsub-etl status opps.json --watch                again every 5 s
        pubsub-etl status opps.json --quiet --max-age 1h   for cron
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Print JSON. All members are always present; times are in UTC, ages in milliseconds.")
  var json = false

  @Flag(help: "Print nothing if all is well.")
  var quiet = false

  @Option(
    name: .customLong("watch"), defaultAsFlag: 5,
    help: ArgumentHelp(
      "Show the status on the terminal again after this many seconds, until Ctrl-C; default: 5.",
      valueName: "seconds"))
  var watchInterval: Int?

  @Flag(help: "Read every finished file and compare its size and SHA-256 with the manifest.")
  var verify = false

  @Option(
    help: ArgumentHelp(
      "Maximum time since the last commit, for example 1h; if it is exceeded, the exit code is 75.",
      valueName: "time"),
    transform: {
      guard let duration = JSONReader.duration($0), duration > .zero else {
        throw ValidationError("expected a time such as 90s, 10m or 1h30m")
      }
      return duration
    })
  var maxAge: Duration?

  func validate() throws {
    guard let watchInterval else { return }
    guard (1...86_400).contains(watchInterval) else {
      throw ValidationError("--watch takes a number of seconds from 1 to 86400")
    }
    let others = [("--json", self.json), ("--quiet", self.quiet), ("--verify", self.verify)]
    if let other = others.first(where: \.1) {
      throw ValidationError("--watch and \(other.0) cannot be used together")
    }
  }

  func run() async throws {
    guard self.watchInterval == nil || StandardStream.output.isTerminal else {
      throw ValidationError("--watch needs a terminal")
    }
    let configuration = try self.options.loadWithoutLoginOrExit()
    guard let watchInterval else {
      let status = try self.read(configuration)
      if !self.quiet || status.exitCode != 0 { try self.show(status, configuration.secrets) }
      if status.exitCode != 0 { throw ArgumentParser.ExitCode(status.exitCode) }
      return
    }
    SignalWatcher.endAtOnce()
    let clock = ProcessClock()
    while true {
      let status = try self.read(configuration)
      try self.show(status, configuration.secrets)
      try await clock.sleep(for: .seconds(watchInterval))
    }
  }

  private func read(_ configuration: PipelineConfiguration) throws -> PipelineStatus {
    do {
      return try PipelineStatus.read(configuration, maxAge: self.maxAge, verifies: self.verify)
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
  }

  private func show(_ status: PipelineStatus, _ secrets: SecretMask) throws {
    let text =
      self.json
      ? PrintableText(json: status.json, hiding: secrets)
      : status.printable(isColored: StandardStream.output.isColored(), hiding: secrets)
    let start: PrintableText = self.watchInterval == nil ? .empty : .screenEraser
    try StandardStream.print(start + text)
  }
}

extension PipelineOptions {
  /// The pipeline as it is meant. Its mistakes go to standard error, and the command ends with 78.
  func loadOrExit() throws -> PipelineConfiguration { try Self.orExit { try self.load() } }

  /// The same, for commands that connect to no org: they need no variables of its login.
  func loadWithoutLoginOrExit() throws -> PipelineConfiguration {
    try Self.orExit { try self.load { PipelineConfiguration.removeLogin(from: &$0) } }
  }

  /// Prints mistakes of configuration on standard error, and throws their exit code.
  static func orExit<Value>(_ load: () throws -> Value) throws -> Value {
    do {
      return try load()
    } catch let error as ConfigurationError {
      StandardStream.tell(error.printable)
      throw error.exitCode.error
    } catch let failure as RunFailure {
      throw failure.reported(hiding: SecretMask())
    }
  }
}

extension RunFailure {
  /// Says on standard error what failed; what to throw from a command's `run`.
  func reported(hiding secrets: SecretMask) -> any Error {
    StandardStream.tell(PrintableText(line: self.message, hiding: secrets))
    return self.exitCode.error
  }
}
