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
      "\n\nRuns a pipeline", "\n\nPIPELINE FILE:", "\n\nOPTIONS:", "\n\nEXAMPLES:\n  ",
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

  @Test("Other text is unchanged", arguments: ["", "0.2.0 (abc)", "USAGE: x", "OVERVIEW: x"])
  func other(text: String) {
    #expect(HelpText.arranged(text) == text)
  }
}
