import ArgumentParser
import Testing

@testable import PubSubETL

@Suite("Help")
struct HelpTextTests {
  @Test("Help begins with the usage and ends with the examples")
  func order() throws {
    let text = HelpText.arranged(RunCommand.helpMessage(columns: 80))
    #expect(text.hasPrefix("USAGE: "))
    let places = try [
      "\n\nRuns a pipeline", "\n\nPIPELINE:", "\n\nOPTIONS:", "\n\nEXAMPLES:\n  ",
    ]
    .map {
      try #require(text.firstRange(of: $0), "\($0) is missing").lowerBound
    }
    #expect(places == places.sorted())
    #expect(!text.contains("OVERVIEW"))
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
  }

  @Test("Help without examples keeps every line")
  func withoutExamples() {
    let text = Program.helpMessage(columns: 80)
    let arranged = HelpText.arranged(text)
    #expect(arranged.hasPrefix("USAGE: "))
    let lines = { (text: String) in
      text.replacing("OVERVIEW: ", with: "").split(separator: "\n").sorted()
    }
    #expect(lines(arranged) == lines(text))
  }

  /// Commands without subcommands, with their names.
  private static func leaves(
    _ command: any ParsableCommand.Type, _ name: String
  ) -> [(name: String, command: any ParsableCommand.Type)] {
    let children = command.configuration.subcommands
    guard !children.isEmpty else { return [(name, command)] }
    return children.flatMap { Self.leaves($0, "\(name) \($0._commandName)") }
  }

  @Test("Every command has examples, in lines of at most 80 characters, that it accepts")
  func examples() throws {
    let commands = Self.leaves(Program.self, "pubsub-etl")
    #expect(commands.count > 20)
    for (name, command) in commands {
      let text = HelpText.arranged(Program.helpMessage(for: command, columns: 80))
      let parts = text.split(separator: "\n\nEXAMPLES:\n")
      guard parts.count == 2 else {
        Issue.record("\(name) has no examples")
        continue
      }
      for line in parts[1].split(separator: "\n") {
        #expect(line.count <= 80, "\(line)")
        // Others need a shell.
        guard !line.contains(where: { "'\"\\|".contains($0) }) else { continue }
        let words = line.split(separator: #/ {3,}| [<>] /#)[0].split(separator: " ")
        #expect(line.contains(name), "\(line)")
        #expect(throws: Never.self, "\(line)") {
          _ = try Program.parseAsRoot(words.dropFirst().map(String.init))
        }
      }
    }
  }

  @Test("Other text is unchanged", arguments: ["", "0.2.0 (abc)", "USAGE: x", "OVERVIEW: x"])
  func other(text: String) {
    #expect(HelpText.arranged(text) == text)
  }
}
