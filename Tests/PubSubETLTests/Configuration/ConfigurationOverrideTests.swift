import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Overrides with --set")
struct ConfigurationOverrideTests {
  private func apply(_ argument: String) throws -> (value: JSONValue, mistakes: [String]) {
    var document: JSONValue = ["source": ["topic": "/data/A"], "sinks": [["type": "files"]]]
    let mistakes = JSONMistakes()
    try ConfigurationOverride(argument).apply(to: &document, mistakes: mistakes)
    return (document, mistakes.all.map(\.description))
  }

  @Test("Values are replaced and added, as JSON where possible and otherwise as text")
  func values() throws {
    func value(_ argument: String, _ path: (JSONValue) -> JSONValue?) throws -> JSONValue? {
      let result = try self.apply(argument)
      #expect(result.mistakes == [])
      return path(result.value)
    }
    #expect(try value("source.topic=/event/X__e") { $0["source"]?["topic"] } == "/event/X__e")
    #expect(try value("source.topic=[\"a\"]") { $0["source"]?["topic"] } == ["a"])
    #expect(try value("sinks.0.directory=/d=e") { $0["sinks"]?.array?[0]["directory"] } == "/d=e")
    #expect(try value("run.until.events=5") { $0["run"]?["until"]?["events"] } == 5)
    #expect(try value("run.quiet=15s") { $0["run"]?["quiet"] } == "15s")
    #expect(try value("name=") { $0["name"] } == "")
    #expect(try value("name=\"5\"") { $0["name"] } == "5")
  }

  @Test("A path that does not exist is a mistake")
  func nowhere() throws {
    #expect(
      try self.apply("sinks.1.type=x").mistakes == [
        "/sinks/1: --set does not name an element of the array; known: 0 to 0"
      ])
    #expect(
      try self.apply("sinks.first.type=x").mistakes == [
        "/sinks/first: --set does not name an element of the array; known: 0 to 0"
      ])
    #expect(
      try self.apply("source.topic.name=x").mistakes == [
        "/source/topic/name: --set goes into a string, which has no members"
      ])
  }

  @Test(
    "Secrets and malformed arguments are refused, and the error does not quote them",
    arguments: [
      "source.org.auth.client_secret=hidden", "source.org.auth={\"access_token\":\"hidden\"}",
      "sinks=[{\"password\":\"hidden\"}]", "hidden", "=hidden", "a..b=hidden", ".a=hidden",
    ])
  func refused(argument: String) throws {
    let error = #expect(throws: ConfigurationOverride.ParseError.self) {
      try ConfigurationOverride(argument)
    }
    #expect(error?.description.contains("hidden") == false)
  }

  @Test("Interpolation follows overrides, and mistakes name their origin")
  func order() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load(
      sets: ["source.num_requested=${N}", "name=${PREFIX}-x"],
      environment: ["N": "7", "PREFIX": "p"])
    #expect(configuration.source.numRequested == 7)
    #expect(configuration.name == "p-x")
    #expect(
      try sample.mistakes(sets: ["source.num_requested=0", "nmae=x"]) == [
        "pipeline.json (--set): /nmae: unknown key; did you mean 'name'?; known: $schema, version, name, source, stages, sinks, commit, checkpoint, dead_letter, run, retry, repair, allowance, metrics, notify",
        "pipeline.json (--set): /source/num_requested: expected an integer from 1 to 100, found 0",
      ])
  }
}
