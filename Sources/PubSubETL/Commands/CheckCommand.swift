import ArgumentParser

/// `pubsub-etl check FILE`: every mistake of a pipeline file, without running it.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Reports every mistake in a pipeline file. Exports nothing.",
    discussion: """
      Prints how the file is understood, with absolute paths, and reports what would stop a run \
      on this machine: directories that cannot be written, a damaged checkpoint, a missing \
      position.
      Exit codes: 0 a run can begin; 64 command line; 65 a damaged checkpoint; 74 a directory \
      that cannot be written; 78 mistakes in the file, or a new sink or topic without a start; \
      with --connect also 69 service or database unavailable, 77 login, topic or database \
      refused.
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
    StandardStream.output.write(
      PrintableText(lines: ConfigurationSummary.text(configuration), hiding: secrets))
    for warning in configuration.securityWarnings {
      StandardStream.error.write(PrintableText(line: "warning: \(warning)", hiding: secrets))
    }
    for line in LocalCheck.warnings(configuration) {
      StandardStream.error.write(PrintableText(line: line, hiding: secrets))
    }
    let failures = LocalCheck.failures(configuration)
    for failure in failures {
      StandardStream.error.write(PrintableText(line: failure.message, hiding: secrets))
    }
    if let first = failures.first { throw first.exitCode.error }
    guard self.connect else { return }
    do throws(ConnectionCheck.Failure) {
      for line in try await ConnectionCheck.askService(configuration) {
        StandardStream.output.write(PrintableText(line: line, hiding: secrets))
      }
      for line in try ConnectionCheck.askSinks(configuration) {
        StandardStream.output.write(PrintableText(line: line, hiding: secrets))
      }
    } catch {
      StandardStream.error.write(PrintableText(line: error.message, hiding: secrets))
      throw error.exitCode.error
    }
  }
}
