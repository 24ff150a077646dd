import ArgumentParser

/// `pubsub-etl check FILE`: every mistake of a pipeline file, without running it.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Reports every mistake of a pipeline file; nothing is exported.",
    discussion: """
      Prints what the file means, with absolute paths.
      Exit codes: 0 the file is in order, 64 command line, 78 mistakes in the file; with \
      --connect also 69 service or database unavailable, 77 login, topic or database refused.
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Also log in, ask for every topic and connect to every database.")
  var connect = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    StandardStream.output.write(
      PrintableText(lines: ConfigurationSummary.text(configuration), hiding: secrets))
    guard self.connect else { return }
    do throws(ConnectionCheck.Failure) {
      for line in try await ConnectionCheck.askService(configuration) {
        StandardStream.output.write(PrintableText(line: line, hiding: secrets))
      }
      for line in try ConnectionCheck.askDatabases(configuration.postgresSinks) {
        StandardStream.output.write(PrintableText(line: line, hiding: secrets))
      }
    } catch {
      StandardStream.error.write(PrintableText(line: error.message, hiding: secrets))
      throw error.exitCode.error
    }
  }
}
