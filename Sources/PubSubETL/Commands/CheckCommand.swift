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
    let configuration: PipelineConfiguration
    do {
      configuration = try self.options.load()
    } catch let error as ConfigurationError {
      StandardStream.error.write(ConfigurationSummary.mistakes(error))
      throw ExitCode.configuration.error
    }
    StandardStream.output.write(ConfigurationSummary.text(configuration))
    guard self.connect else { return }
    do throws(ConnectionCheck.Failure) {
      for line in try await ConnectionCheck.askService(configuration) {
        StandardStream.output.write("\(line)\n")
      }
      for line in try ConnectionCheck.askDatabases(configuration.postgresSinks) {
        StandardStream.output.write("\(line)\n")
      }
    } catch {
      StandardStream.error.write("\(error.message)\n")
      throw error.exitCode.error
    }
  }
}
