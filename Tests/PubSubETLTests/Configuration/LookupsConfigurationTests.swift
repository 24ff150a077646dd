import Pipeline
import PostgresSink
import Testing

@testable import PubSubETL

@Suite("Objects without change events in pipeline files") struct LookupsConfigurationTests {
  @Test("Every sink and the summary know the objects and how often they are read")
  func read() throws {
    let text = SamplePipeline.minimal.replacing(
      #"{ "type": "files", "directory": "out" }"#,
      with: #"{ "type": "postgres", "url": "postgresql:///x" }"#)
    let configuration = try SamplePipeline().load(
      text, sets: [#"source.lookups={"objects": ["User", "Depot__c"], "every": "2h"}"#])
    #expect(configuration.source.lookups.fullEvery == .seconds(7 * 86_400))
    #expect(
      configuration.source.polledObjects.map(\.topic) == [
        "/data/UserChangeEvent", "/data/Depot__ChangeEvent",
      ])
    let sink = try #require(configuration.postgresSinks.first)
    #expect(
      sink.sink(of: configuration).polls == [
        "User": .seconds(7200), "Depot__c": .seconds(7200),
      ])
    #expect(
      configuration.source.feedingTopics == [
        "/data/OpportunityChangeEvent", "/data/UserChangeEvent", "/data/Depot__ChangeEvent",
      ])
    #expect(ConfigurationSummary.text(configuration).contains("User, Depot__c, every 2 h"))
  }

  @Test("Without lookups no sink reads anything more")
  func absent() throws {
    let configuration = try SamplePipeline().load()
    #expect(configuration.source.polls.isEmpty && configuration.source.feedingTopics.count == 1)
  }

  @Test(
    "A mistake is reported with its place",
    arguments: [
      (#"{}"#, "/source/lookups/objects: is required"),
      (#"{"objects": []}"#, "/source/lookups/objects: expected at least one object"),
      (
        #"{"objects": ["User", "User"]}"#,
        "/source/lookups/objects/1: the object User is listed twice"
      ),
      (
        #"{"objects": ["Us er"]}"#,
        "/source/lookups/objects/0: expected the API name of an object, found a string"
      ),
      (
        #"{"objects": ["User", "Opportunity"]}"#,
        "/source/lookups/objects/1: the topic /data/OpportunityChangeEvent delivers the changes of "
          + "Opportunity; remove it from one of the two"
      ),
      (
        #"{"objects": ["User"], "every": "4m"}"#,
        "/source/lookups/every: expected at least 5m; less is for loopback addresses only"
      ),
      (
        #"{"objects": ["User"], "every": "2h", "full_every": "1h"}"#,
        "/source/lookups/full_every: expected at least the time in 'every': both read what has changed"
      ),
    ])
  func mistakes(lookups: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: ["source.lookups=\(lookups)"])
    #expect(mistakes.first?.contains(expected) == true, "\(mistakes)")
  }

  @Test("An object is read in one way, and somewhere")
  func elsewhere() throws {
    let twice = try SamplePipeline().mistakes(sets: [
      #"source.topic="/data/ChangeEvents""#, #"source.snapshot={"objects": ["User"]}"#,
      #"source.lookups={"objects": ["User"]}"#,
    ])
    #expect(twice.count == 1)
    #expect(
      twice[0].contains(
        "/source/lookups/objects/0: User is also in source.snapshot.objects; remove it from one of "
          + "the two"))
    let nowhere = try SamplePipeline().mistakes(sets: [
      #"source.lookups={"objects": ["User"]}"#, #"sinks=[{"type": "stdout"}]"#,
    ])
    #expect(nowhere.count == 1)
    #expect(
      nowhere[0].contains(
        "records can be read into files and postgres sinks only, and this pipeline has none"))
  }
}
