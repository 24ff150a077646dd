import ArgumentParser
import Logging
import Testing

@testable import PubSubETL

@Suite("Command line")
struct RunOptionsTests {
  private func refusal(_ arguments: [String]) -> String? {
    do {
      _ = try RunCommand.parse(arguments)
      return nil
    } catch {
      #expect(RunCommand.exitCode(for: error).rawValue == ExitCode.usage.rawValue)
      return RunCommand.fullMessage(for: error)
    }
  }

  @Test("The flags of run are read")
  func flags() throws {
    let command = try RunCommand.parse([
      "p.json", "--set", "name=a", "--set", "run.quiet=5s", "--root", "/srv", "--follow",
      "--max-events", "10", "--max-duration", "1h30m", "--report", "-", "--log-format", "json",
    ])
    let options = command.options
    #expect(command.pipeline.pipeline == "p.json")
    #expect(command.pipeline.changes.sets == ["name=a", "run.quiet=5s"])
    #expect(command.pipeline.changes.root == "/srv")
    #expect(options.limits.maxEvents == 10)
    #expect(options.limits.maxDuration == .seconds(5400))
    #expect(options.report == "-")
    #expect(options.log.logFormat == .json)
  }

  @Test("Flags override the conditions in the file, and the log level follows them")
  func effects() throws {
    let file = RunConfiguration(until: .events(5))
    let plain = try RunOptions.parse([])
    #expect(plain.limits.until(file) == .events(5))
    #expect(plain.effectiveLogLevel == .warning)
    let follow = try RunOptions.parse(["--follow"])
    #expect(follow.limits.until(file) == .forever)
    #expect(follow.effectiveLogLevel == .info)
    let once = try RunOptions.parse(["--until-caught-up", "--log-level", "debug"])
    #expect(once.limits.until(file) == .caughtUp)
    #expect(once.effectiveLogLevel == .debug)
  }

  @Test(
    "Contradictory options are refused with exit code 64",
    arguments: [
      ["p", "--follow", "--until-caught-up"], ["p", "--max-events", "0"],
      ["p", "--max-duration", "10"], ["p", "--log-level", "loud"], ["p", "--log-format", "xml"],
      ["p", "--set", "name"], ["p", "--unknown"], ["p", "q"], [],
    ])
  func refused(arguments: [String]) {
    #expect(self.refusal(arguments) != nil)
  }

  @Test("The error for a secret on the command line does not quote it")
  func secret() throws {
    let message = try #require(
      self.refusal(["p", "--set", "source.org.auth.client_secret=hidden"]))
    #expect(message.contains("client_secret cannot be given with --set"))
    #expect(!message.contains("hidden"))
  }

  @Test(
    "An unknown subcommand is named with the nearest one and the list",
    arguments: [
      (["runn", "x.json"], "'runn' of 'pubsub-etl'. Did you mean 'run'? Known: run, check, "),
      (["frob", "--json"], "'frob' of 'pubsub-etl'. Known: run, check, "),
      (
        ["checkpoint", "sho"], "'sho' of 'pubsub-etl checkpoint'. Did you mean 'show'? Known: show"
      ),
      (["dead-letters", "lists"], "Did you mean 'list'?"),
    ])
  func unknownSubcommands(arguments: [String], words: String) {
    let message = UnknownSubcommand.message(in: arguments, of: Program.self)
    #expect(message?.contains(words) == true, "\(message ?? "")")
  }

  @Test(
    "Known subcommands, help and options are left to the argument parser",
    arguments: [
      [], ["--version"], ["help", "runn"], ["run", "frob"], ["checkpoint"], ["checkpoint", "show"],
      ["checkpoint", "help", "sho"], ["checkpoint", "--help"], ["pipeline-schema"],
      ["refold", "x.json"],
    ])
  func knownSubcommands(arguments: [String]) {
    #expect(UnknownSubcommand.message(in: arguments, of: Program.self) == nil)
  }

  @Test("Exit codes are those listed on the page ExitCodes")
  func exitCodes() {
    #expect(
      ExitCode.allCases.map(\.rawValue) == [0, 1, 64, 65, 69, 70, 74, 75, 77, 78, 129, 130, 143])
  }
}
