import ArgumentParser
import CBuildInfo
import Clocks
import Dispatch
import EventLoop
import Glibc
import TLSStream

/// The beginning of the process.
package enum Main {
  /// Runs the command that the process was started with, and ends the process.
  ///
  /// Not `async`: an asynchronous `main` starts threads of the runtime before its first line, which may
  /// need descriptors before there is a check that some are free.
  ///
  /// - Parameter clockOfRun: for the command `run`; all others go by the machine's clock.
  package static func run(
    clockOfRun: @escaping ClockOfRun = { _ throws(ClockRefusal) in ProcessClock() }
  ) -> Never {
    StandardStream.occupyClosed()
    // Otherwise it tells syslog, in each run, that only root may raise the priority of threads.
    setenv("LIBDISPATCH_LOG", "NO", 0)
    OpenSSLLifetime.outliveThreads()
    guard let arguments = ProcessArguments.afterName else {
      Self.end(.internal, ProcessArguments.missing)
    }
    // Scripts ask often: without threads and their checks.
    if arguments == ["--version"] {
      Self.printVersion()
      exit(0)
    }
    if let unknown = UnknownSubcommand.message(in: arguments, of: Program.self) {
      Self.end(.usage, unknown)
    }
    guard RuntimeThreads.canBeWatched else {
      Self.end(.configuration, RuntimeThreads.unwatched)
    }
    do {
      try RuntimeDescriptors.require()
      try RuntimeThreads.require()
    } catch {
      Self.end(.tryAgain, "\(error)")
    }
    Task { @MainActor in
      await RuntimeDescriptors.open()
      await Self.execute(arguments, clockOfRun)
      exit(0)
    }
    dispatchMain()
  }

  @MainActor private static func execute(
    _ arguments: [String], _ clockOfRun: ClockOfRun
  ) async {
    do {
      var command = try Program.parseAsRoot(arguments)
      if let command = command as? RunCommand {
        try await command.run(clockOfRun)
      } else if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let failure as RunFailure {
      Program.exit(withError: failure.reported(hiding: SecretMask()))
    } catch {
      guard Program.exitCode(for: error).isSuccess else { Program.exit(withError: error) }
      let message = Program.message(for: error)
      if message == Program.configuration.version { return Self.printVersion() }
      Self.print(HelpText.arranged(message) + "\n")
    }
  }

  private static func printVersion() {
    let libraries = String(unsafeUninitializedCapacity: 512) {
      pubsub_etl_libraries($0.baseAddress, $0.count)
    }
    Self.print("\(Program.configuration.version)\n\(libraries)\n")
  }

  private static func print(_ text: String) {
    do throws(RunFailure) {
      try StandardStream.print(PrintableText(lines: text, hiding: SecretMask()))
    } catch {
      Self.end(error.exitCode, error.message)
    }
  }

  private static func end(_ code: ExitCode, _ message: String) -> Never {
    StandardStream.tell(PrintableText(line: message, hiding: SecretMask()))
    Program.exit(withError: code.error)
  }
}

struct Program: AsyncParsableCommand {
  static let version = PUBSUB_ETL_VERSION

  static let configuration = CommandConfiguration(
    commandName: "pubsub-etl",
    abstract: "Exports Salesforce Pub/Sub API events exactly once.",
    version: String(cString: pubsub_etl_build()),
    subcommands: [
      RunCommand.self, CheckCommand.self, DoctorCommand.self, InitCommand.self, TopicsCommand.self,
      FieldsCommand.self, TailCommand.self,
      PlanCommand.self, StatusCommand.self, RunsCommand.self, ReportCommand.self,
      CheckpointCommand.self, SnapshotCommand.self, RepairCommand.self, VerifyCommand.self,
      RefoldCommand.self, CompactCommand.self, EraseCommand.self, DeadLettersCommand.self,
      PublishCommand.self,
      PermissionsCommand.self,
      EvalCommand.self,
      TestCommand.self,
      PipelineSchemaCommand.self,
    ])
}
