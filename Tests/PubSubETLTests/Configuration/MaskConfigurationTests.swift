import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Masks in pipeline files")
struct MaskConfigurationTests {
  private static let stage = #"stages=[{"type":"mask","columns":["A"],"with":"redact"}]"#

  @Test("A pipeline with a mask has to choose sealed dead letters or none")
  func decision() throws {
    let sinkStage = #"sinks.0.stages=[{"type":"mask","columns":["A"],"with":"redact"}]"#
    for stage in [Self.stage, sinkStage] {
      for letters in [[], ["dead_letter.payload=full"]] {
        let mistakes = try SamplePipeline().mistakes(sets: [stage] + letters)
        #expect(mistakes.count == 1)
        #expect(mistakes.first?.contains("/dead_letter: dead letters would hold") == true)
        #expect(mistakes.first?.contains("\"sealed\"") == true)
        #expect(mistakes.first?.contains("\"none\"") == true)
      }
      _ = try SamplePipeline().load(sets: [stage, "dead_letter.payload=none"])
    }
  }

  @Test("A warning names drop while dead letters hold whole events")
  func drop() throws {
    let drop = #"stages=[{"type":"drop","columns":["Email","_change_origin"]}]"#
    let loaded = try SamplePipeline().load(sets: [drop])
    #expect(LocalCheck.warnings(loaded).map { $0.contains("(Email)") } == [true])
    let none = try SamplePipeline().load(sets: [drop, "dead_letter.payload=none"])
    #expect(LocalCheck.warnings(none).isEmpty)
    let metadata = #"stages=[{"type":"drop","columns":["_change_origin"]}]"#
    #expect(LocalCheck.warnings(try SamplePipeline().load(sets: [metadata])).isEmpty)
  }

  private func pipeline(_ members: String) -> String {
    SamplePipeline.minimal.replacing(
      "\"checkpoint\":",
      with: """
        "stages": [{ "type": "mask", "columns": ["A"], "with": "hash", \(members) }],
        "dead_letter": { "payload": "none" }, "checkpoint":
        """)
  }

  @Test("The hash key comes from a variable or a file, and no output shows it")
  func keys() throws {
    let key = "correct horse battery"
    let sample = try SamplePipeline()
    try sample.write(key + "\n", to: "mask.key")
    #expect(chmod("\(sample.base)/mask.key", 0o644) == 0)
    for members in [#""key": "${MASK_KEY}""#, #""key_file": "mask.key""#] {
      let loaded = try sample.load(self.pipeline(members), environment: ["MASK_KEY": key])
      #expect(loaded.secrets.redacted("a \(key)") == "a <redacted>")
      #expect(loaded.stages.first?.value["key"]?.string == key)
      _ = try #require(loaded.stages.first).transform()
      #expect(loaded.securityWarnings.count == (members.contains("file") ? 1 : 0))
    }
  }

  @Test(
    "A key that is literal, short or missing is refused, and the error does not quote it",
    arguments: [
      (#""key": "correct horse battery""#, "/stages/0/key: a key is not written into"),
      (#""key": "${SHORT}""#, "/stages/0/key: needs at least 16 bytes"),
      (#""key_file": "nowhere""#, "/stages/0/key_file: the file"),
      (#""key": "${MASK_KEY}", "key_file": "x""#, "/stages/0/key_file: either key_file or key"),
      (#""missing": "ignore""#, "/stages/0/key: is required by hash"),
    ])
  func mistakes(members: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(
      self.pipeline(members),
      environment: ["MASK_KEY": "correct horse battery", "SHORT": "hunter2"])
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
    #expect(!mistakes.contains { $0.contains("horse") || $0.contains("hunter2") })
  }
}
