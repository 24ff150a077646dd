import ArgumentParser
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Options of a dry run") struct DryRunOptionsTests {
  @Test("The options of a dry run choose its start and its output")
  func options() throws {
    let command = try RunCommand.parse([
      "p", "--dry-run", "--from", "00fF", "--show-masked", "--json", "--max-events", "1000",
    ])
    #expect(command.dryRun.from == .after(ReplayID([0x00, 0xFF])))
    #expect(command.dryRun.showMasked && command.dryRun.json)
    #expect(try RunCommand.parse(["p", "--dry-run", "--from", "latest"]).dryRun.from == .latest)
  }

  @Test(
    "Options that have no meaning for a dry run are refused",
    arguments: [
      ["--dry-run", "--follow"], ["--dry-run", "--report", "-"], ["--dry-run", "--accept-reset"],
      ["--dry-run", "--accept-missing"], ["--dry-run", "--take-over"],
      ["--dry-run", "--max-events", "1001"], ["--dry-run", "--max-events", "0"],
      ["--dry-run", "--from", "tomorrow"], ["--dry-run", "--from", "0"], ["--from", "earliest"],
      ["--show-masked"], ["--json"],
    ])
  func refused(arguments: [String]) {
    do {
      _ = try RunCommand.parse(["p"] + arguments)
      Issue.record("\(arguments) were accepted")
    } catch {
      #expect(RunCommand.exitCode(for: error).rawValue == ExitCode.usage.rawValue)
    }
  }
}
