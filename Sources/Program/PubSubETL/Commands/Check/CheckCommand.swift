import ArgumentParser

/// `pubsub-etl check FILE`: every mistake of a pipeline file, without running it.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Reports every mistake in a pipeline file. Exports nothing.",
    discussion: """
      Prints how the file is understood, with absolute paths, and reports what would stop a run \
      on this machine: directories that cannot be written, a damaged checkpoint, a missing \
      position. The last line is the verdict.
      Exit codes: 0 a run can begin; 64 command line; 65 a damaged checkpoint; 74 a directory \
      that cannot be written; 78 mistakes in the file, or a new sink or topic without a start; \
      with --connect also 69 service or database unavailable, 77 login, topic or database \
      refused.

      EXAMPLES:
        pubsub-etl check opps.json              find mistakes in the file
        pubsub-etl check opps.json --connect    also test login, topics and databases
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(
    help:
      "Also log in, check every topic, the managed subscription and every column name, and connect to every database."
  )
  var connect = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    try StandardStream.print(
      PrintableText(
        lines: ConfigurationSummary.text(
          configuration, stored: LocalCheck.storedTopics(configuration)),
        hiding: secrets))
    for warning in configuration.securityWarnings {
      StandardStream.tell(PrintableText(line: "warning: \(warning)", hiding: secrets))
    }
    for line in LocalCheck.warnings(configuration) {
      StandardStream.tell(PrintableText(line: line, hiding: secrets))
    }
    let failures = LocalCheck.failures(configuration)
    for failure in failures {
      StandardStream.tell(PrintableText(line: failure.message, hiding: secrets))
    }
    if let first = failures.first { throw try Self.refused(first.exitCode).error }
    guard self.connect else {
      try Self.conclude("valid; --connect also checks the login, topics and databases")
      return
    }
    // What the service refuses does not hide what a database refuses.
    let service = try await Self.show(hiding: secrets) {
      () async throws(ConnectionCheck.Failure) -> [String] in
      try await ConnectionCheck.askService(configuration)
    }
    let sinks = try await Self.show(hiding: secrets) {
      () async throws(ConnectionCheck.Failure) -> [String] in
      try ConnectionCheck.askSinks(configuration)
    }
    if let first = service ?? sinks { throw try Self.refused(first.exitCode).error }
    try Self.conclude("ready to run")
  }

  private static func refused(_ code: ExitCode) throws -> ExitCode {
    try Self.conclude("not ready: a run would end with exit code \(code.rawValue)")
    return code
  }

  /// The last line, in the form of those before.
  private static func conclude(_ verdict: String) throws {
    try StandardStream.print(
      PrintableText(line: ConfigurationSummary.line("verdict", verdict), hiding: SecretMask()))
  }

  /// Prints a line for each thing that works, or what is wrong.
  private static func show(
    hiding secrets: SecretMask, _ lines: () async throws(ConnectionCheck.Failure) -> [String]
  ) async throws -> ConnectionCheck.Failure? {
    let working: [String]
    do throws(ConnectionCheck.Failure) {
      working = try await lines()
    } catch {
      for message in [error.message] + error.otherMessages {
        StandardStream.tell(PrintableText(line: message, hiding: secrets))
      }
      return error
    }
    for line in working {
      try StandardStream.print(PrintableText(line: line, hiding: secrets))
    }
    return nil
  }
}
