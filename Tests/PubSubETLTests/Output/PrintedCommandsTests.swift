import JSON
import Testing

@testable import PubSubETL

@Suite("Commands in messages")
struct PrintedCommandsTests {
  @Test(
    "A command without a pipeline file gets the file and the root",
    arguments: [
      ("begin with 'run --accept-reset'.", "begin with 'pubsub-etl run /p.json --accept-reset'."),
      ("'dead-letters retry' or 'drop'", "'pubsub-etl dead-letters retry /p.json' or 'drop'"),
      ("run 'pubsub-etl snapshot'", "run 'pubsub-etl snapshot /p.json'"),
      (
        "'pubsub-etl checkpoint set FILE --topic /data/X'",
        "'pubsub-etl checkpoint set /p.json --topic /data/X'"
      ),
      (
        "it's 'checkpoint set' and 'verify --full'",
        "it's 'pubsub-etl checkpoint set /p.json' and 'pubsub-etl verify /p.json --full'"
      ),
    ])
  func completed(text: String, expected: String) {
    #expect(PrintedCommands(words: "/p.json").completing(text) == expected)
  }

  @Test(
    "Complete commands, names and other texts stay as they are",
    arguments: [
      "'pubsub-etl snapshot /p.json --root /r'", "'status' shows", "the stage 'drop'", "'", "''",
      "sink 'run'", "the name 'checkpoint x'", "'dead-letters'", "'run as user'", "no quote",
      "'pubsub-etl'", "'pubsub-etl dead-letters drop /p.json ID'",
    ])
  func unchanged(text: String) {
    #expect(PrintedCommands(words: "/p.json").completing(text) == text)
  }

  @Test("Messages and log lines of a pipeline have complete commands, and data does not change")
  func printed() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load(SamplePipeline.minimal)
    let text = "put it back, or 'run --accept-missing'"
    let completed = PrintableText(line: text, hiding: configuration.secrets).text
    #expect(
      completed == "put it back, or 'pubsub-etl run \(configuration.file) --accept-missing'\n")
    #expect(PrintableText(lines: text + "\n", hiding: configuration.secrets).text == completed)
    let json = PrintableText(json: .string(text), .compact, hiding: configuration.secrets).text
    #expect(json == "\"\(text)\"\n")
  }
}
