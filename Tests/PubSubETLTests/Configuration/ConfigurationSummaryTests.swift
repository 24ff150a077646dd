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
        sink          files: files in \(sample.base)/out
        checkpoint    \(sample.base)/state
        dead letters  \(sample.base)/state/dead
        until         caught up

        """)
  }
}
