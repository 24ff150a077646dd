import JSON
import SimulatedOrg
import Testing

@testable import Rehearsal

@Suite("The pipeline of a rehearsal")
struct RehearsedPipelineTests {
  private func pipeline(
    _ json: String, databaseURL: String? = nil
  ) throws -> RehearsedPipeline {
    try RehearsedPipeline(json: json, path: "p.json", work: "/w", databaseURL: databaseURL)
  }

  private let files = """
    {"version": 1, "name": "p", "source": {"topic": "/data/OpportunityChangeEvent", "org": "org.json"},
     "sinks": [{"type": "files", "directory": "../out", "int64": "string"}],
     "checkpoint": {"type": "file", "directory": "../state", "renew_after": "6h"},
     "dead_letter": {"directory": "../dead", "max": 3}, "run": {"until": "forever"}}
    """

  @Test("A rehearsal replaces only where the pipeline reads and writes")
  func replacesPlaces() throws {
    let pipeline = try self.pipeline(self.files)
    #expect(pipeline.name == "p")
    #expect(pipeline.topics == ["/data/OpportunityChangeEvent"])
    #expect(pipeline.directories.map(\.path) == ["/w/out/0"])
    #expect(pipeline.runsForever)
    #expect(self.at("/source/org/endpoint", pipeline) == "${PUBSUB_ENDPOINT}")
    #expect(self.at("/sinks/0/directory", pipeline) == "/w/out/0")
    #expect(self.at("/sinks/0/int64", pipeline) == "string")
    #expect(self.at("/checkpoint/directory", pipeline) == "/w/state")
    #expect(self.at("/checkpoint/renew_after", pipeline) == "6h")
    #expect(self.at("/dead_letter/directory", pipeline) == "/w/state/dead")
    #expect(self.at("/dead_letter/max", pipeline) == "3")
  }

  /// The text of a string or number.
  private func at(_ path: String, _ pipeline: RehearsedPipeline) -> String? {
    var value: JSONValue? = pipeline.document
    for part in path.split(separator: "/") {
      if let index = Int(part) {
        value = value?.array?[index]
      } else {
        value = value?.members?.first { $0.name == part }?.value
      }
    }
    return value?.string ?? value?.integer.map(String.init)
  }

  private let postgres = """
    {"name": "p", "source": {"topic": [{"topic": "/data/AccountChangeEvent", "start": "latest"}]},
     "sinks": [{"type": "postgres", "name": "db", "url": "${DATABASE_URL}", "schema": "s"}]}
    """

  @Test("A postgres sink needs a scratch database")
  func needsDatabase() throws {
    let pipeline = try self.pipeline(self.postgres, databaseURL: "postgresql://x")
    #expect(self.at("/sinks/0/url", pipeline) == "postgresql://x")
    #expect(pipeline.histories.map(\.table) == ["{entity}_history"])
    #expect(pipeline.histories.map(\.schema) == ["s"])
    let error = #expect(throws: SimulatorError.self) { try self.pipeline(self.postgres) }
    #expect(error?.message.contains("sink 'db'") == true)
    #expect(error?.message.contains("--database-url") == true)
  }

  @Test("The org of a pipeline that copies records has some before the first event")
  func readsRecords() throws {
    #expect(try self.pipeline(self.postgres, databaseURL: "postgresql://x").readsRecords)
    #expect(try !self.pipeline(self.files).readsRecords)
    let snapshot = self.files.replacing(
      #""source": {"#, with: #""source": { "snapshot": { "mode": "initial" },"#)
    #expect(try self.pipeline(snapshot).readsRecords)
  }

  @Test("A pipeline that cannot be rehearsed is refused")
  func refuses() {
    func message(_ json: String) -> String? {
      #expect(throws: SimulatorError.self) { try self.pipeline(json) }?.message
    }
    #expect(message("[")?.hasPrefix("p.json: line 1") == true)
    #expect(message("{}")?.contains("is not a pipeline file") == true)
    let unknown = self.files.replacing("OpportunityChangeEvent", with: "NoChangeEvent")
    #expect(message(unknown)?.contains("no topic '/data/NoChangeEvent'; it has: /") == true)
  }
}
