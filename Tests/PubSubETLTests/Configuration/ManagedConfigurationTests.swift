import Clocks
import Pipeline
import PubSubAPI
import Testing

@testable import PubSubETL

@Suite("Configuration of managed subscriptions") struct ManagedConfigurationTests {
  @Test(
    "A managed subscription is named by its developer name or its record ID",
    arguments: [
      ("Nightly_Export", .developerName("Nightly_Export")),
      ("A", .developerName("A")),
      ("Abcdefghijklmno", .developerName("Abcdefghijklmno")),
      ("18x000000000001", .id("18x000000000001")),
      ("18x000000000001AAA", .id("18x000000000001AAA")),
    ] as [(String, ManagedSubscription.Record)])
  func named(text: String, record: ManagedSubscription.Record) throws {
    let configuration = try SamplePipeline().load(sets: ["source.managed=\"\(text)\""])
    #expect(configuration.source.managed == record)
    #expect(
      PipelineAssembly(configuration: configuration, clock: ProcessClock()).topics().map(\.start)
        == [.managed])
    #expect(
      ConfigurationSummary.text(configuration)
        .contains("first run after the position of the managed subscription \(text)"))
  }

  @Test("Without source.managed, topics are read by Subscribe")
  func absent() throws {
    let configuration = try SamplePipeline().load(sets: ["source.start=earliest"])
    #expect(configuration.source.managed == nil)
    #expect(
      PipelineAssembly(configuration: configuration, clock: ProcessClock()).topics().map(\.start)
        == [.earliest])
  }

  @Test(
    "Any other name is refused with the rules",
    arguments: [
      "", "_A", "A_", "A__B", "A-B", "Ä", "18x", "18x00000000000", "18x0000000000012",
      "18x-00000000001", String(repeating: "a", count: 81),
    ])
  func misnamed(text: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: ["source.managed=\"\(text)\""])
    #expect(mistakes.count == 1)
    #expect(mistakes[0].contains("expected the developer name or record ID of a Managed"))
    #expect(mistakes[0].contains("15 or 18 letters and digits and begins with a digit"))
  }

  @Test("A managed subscription takes one topic")
  func severalTopics() throws {
    let mistakes = try SamplePipeline().mistakes(sets: [
      "source.managed=Sub",
      "source.topic=[\"/data/AccountChangeEvent\",\"/data/ContactChangeEvent\"]",
    ])
    #expect(mistakes.count == 1)
    #expect(mistakes[0].hasSuffix("a managed subscription is for one topic, found 2 in 'topic'"))
  }

  @Test("A managed subscription decides where a first run begins")
  func start() throws {
    let mistakes = try SamplePipeline().mistakes(sets: [
      "source.managed=Sub", "source.start=earliest",
    ])
    #expect(mistakes.count == 1)
    #expect(mistakes[0].contains("defaultReplay"))
    #expect(mistakes[0].hasSuffix("or use it in a first run without 'managed'"))
  }
}
