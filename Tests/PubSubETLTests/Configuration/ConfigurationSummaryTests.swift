import TestSupport
import Testing

@testable import PubSubETL

@Suite("Summary of check")
struct ConfigurationSummaryTests {
  @Test("The summary has absolute paths and no secret")
  func summary() throws {
    let sample = try SamplePipeline()
    let text = ConfigurationSummary.text(try sample.load(sets: ["stages=[{\"type\":\"flatten\"}]"]))
    #expect(
      text == """
        pipeline      opps (\(sample.directory.path)/pipeline.json)
        endpoint      https://api.pubsub.salesforce.com:7443
        login         client credentials at https://acme.my.salesforce.com
        topic         /data/OpportunityChangeEvent, without "start": a first run is refused
        stages        flatten
        sink          files: files in \(sample.base)/out, each up to 128MiB, 1000000 events or 1h
        checkpoint    \(sample.base)/state
        dead letters  \(sample.base)/state/dead, with the payload, at most 0 in a run
        until         caught up

        """)
  }

  @Test("A topic with a stored position is not announced as a first run")
  func stored() throws {
    let configuration = try SamplePipeline().load(sets: ["source.start=earliest"])
    let topic = "/data/OpportunityChangeEvent"
    #expect(ConfigurationSummary.text(configuration).contains("\(topic), first run from"))
    let text = ConfigurationSummary.text(configuration, stored: [topic])
    #expect(text.contains("\(topic), continues after the stored position"))
    #expect(!text.contains("first run"))
  }
}
