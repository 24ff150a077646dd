import Testing

@testable import PubSubETL

@Suite("Sink stdout in a pipeline file")
struct StdoutSettingsTests {
  private static let stdout = #"sinks.0={"type":"stdout"}"#

  @Test("The members of the sink have defaults")
  func defaults() throws {
    let configuration = try SamplePipeline().load(sets: [Self.stdout])
    #expect(configuration.sinks.first as? StdoutSettings == StdoutSettings())
    #expect(configuration.needsCheckpoint)
    let named = try SamplePipeline().load(
      sets: [#"sinks.0={"type":"stdout","name":"lines","int64":"string","start":"now"}"#])
    let settings = try #require(named.sinks.first as? StdoutSettings)
    #expect(settings.name == "lines")
    #expect(settings.int64 == .string)
    #expect(settings.start == .now)
  }

  @Test("A second stdout sink is refused")
  func second() throws {
    let mistakes = try SamplePipeline().mistakes(sets: [
      #"sinks=[{"type":"stdout","name":"a"},{"type":"stdout","name":"b"}]"#
    ])
    #expect(mistakes.count == 1)
    #expect(
      mistakes.first?.contains("only one sink can write to standard output, and sink 'a' does")
        == true)
  }
}
