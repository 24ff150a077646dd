import Pipeline
import PostgresSink
import RESTSource
import Testing

@testable import PubSubETL

@Suite("Fields without events in pipeline files") struct RefreshConfigurationTests {
  private static let text = SamplePipeline.minimal.replacing(
    #"{ "type": "files", "directory": "out" }"#,
    with: #"{ "type": "postgres", "url": "postgresql:///x" }"#)

  @Test("The sink and the summary know the objects")
  func read() throws {
    let blind = try SamplePipeline().load(
      Self.text, sets: [#"source.refresh={"fields": "blind"}"#])
    let (entity, topic, refresh) = try #require(blind.source.refreshes.first)
    #expect(entity == "Opportunity" && topic == "/data/OpportunityChangeEvent")
    #expect(refresh == Refresh(fields: nil, every: .seconds(86_400)))
    let sink = try #require(blind.postgresSinks.first)
    #expect(sink.sink(of: blind).refreshes == ["Opportunity refresh:blind"])
    #expect(
      ConfigurationSummary.text(blind).contains(
        "formulas and roll-ups of Opportunity, every 1 d 00 h"))
    let listed = try SamplePipeline().load(
      Self.text,
      sets: [#"source.refresh={"fields": ["Opportunity.Days__c"], "every": "2h"}"#])
    #expect(
      listed.source.refreshes.map(\.refresh) == [
        Refresh(fields: ["Days__c"], every: .seconds(7200))
      ])
    #expect(listed.source.refreshKeys != blind.source.refreshKeys)
  }

  @Test("A run reads the other fields if one is missing, and check fails")
  func missing() throws {
    let configuration = try SamplePipeline().load(
      Self.text,
      sets: [#"source.refresh={"fields": ["Opportunity.Days__c", "Opportunity.No__c"]}"#])
    let (entity, topic, refresh) = try #require(configuration.source.refreshes.first)
    let days = Column(
      name: "Days__c", path: ["Days__c"], content: .slot(MetadataSlot.count, .double))
    let layout = RecordLayout(
      topic: topic, schemaID: "s", entity: entity, family: .changeEvent,
      slotCount: MetadataSlot.count + 1, fieldOrder: [MetadataSlot.count], columns: [days])
    let wanted = WantedRefresh(
      entity: entity, topic: topic, refresh: refresh, stores: ["postgres"], sinks: ["postgres"])
    let read = wanted.reads(layout, RunStages(configuration, org: ""))
    // The same part as before, so the passes continue when the field is back.
    #expect(read.refresh?.fields == ["Days__c", "No__c"] && read.initial == ["postgres"])
    let fault = try #require(refresh.fault(layout))
    #expect(fault.contains("/source/refresh/fields: Opportunity.No__c cannot be refreshed"))
    #expect(!fault.contains("Days__c"))
    let failure = #expect(throws: RunFailure.self) { try refresh.line(layout, BlindFields()) }
    #expect(failure?.reason == .refresh && failure?.exitCode == .configuration)
    #expect(Refresh(fields: ["Days__c"], every: .seconds(60)).fault(layout) == nil)
  }

  @Test("Without it nothing is refreshed")
  func absent() throws {
    let configuration = try SamplePipeline().load()
    #expect(configuration.source.refreshes.isEmpty && configuration.source.refreshKeys.isEmpty)
  }

  @Test(
    "A mistake is reported with its place",
    arguments: [
      (#"{}"#, "/source/refresh/fields: is required"),
      (#"{"fields": []}"#, "/source/refresh/fields: expected at least one field"),
      (#"{"fields": "formulas"}"#, "/source/refresh/fields: unknown value 'formulas'"),
      (
        #"{"fields": ["Opportunity.A__c", "Opportunity.A__c"]}"#,
        "/source/refresh/fields/1: the field Opportunity.A__c is listed twice"
      ),
      (
        #"{"fields": ["A__c"]}"#,
        "/source/refresh/fields/0: expected an object and a field of it, such as "
          + "Opportunity.Days_Open__c"
      ),
      (
        #"{"fields": ["Opportunity.Owner.Name"]}"#,
        "/source/refresh/fields/0: expected an object and a field of it"
      ),
      (
        #"{"fields": ["Opportunity.IsDeleted"]}"#,
        "/source/refresh/fields/0: rows have IsDeleted anyway, as id or _deleted_at"
      ),
      (
        #"{"fields": ["Opportunity.A__c", "Account.B__c"]}"#,
        "/source/refresh/fields/1: no topic brings the changes of Account; known: Opportunity"
      ),
      (
        #"{"fields": ["User.B__c"]}"#,
        "/source/refresh/fields/0: User is in source.lookups, which reads its records anyway"
      ),
      (
        #"{"fields": "blind", "every": "30m"}"#,
        "/source/refresh/every: expected at least 1h; less is for loopback addresses only"
      ),
    ])
  func mistakes(refresh: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: [
      "source.refresh=\(refresh)", #"source.lookups={"objects": ["User"]}"#,
    ])
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
  }

  @Test("Only current tables and files with all records can be refreshed")
  func elsewhere() throws {
    let mistakes = try SamplePipeline().mistakes(sets: [#"source.refresh={"fields": "blind"}"#])
    #expect(mistakes.count == 1)
    #expect(
      mistakes[0].contains(
        "fields can be refreshed in current tables of postgres sinks and, with \"snapshot\": "
          + "{\"mode\": \"initial\"}, in files; this pipeline has neither"), "\(mistakes)")
    let files = try SamplePipeline().mistakes(sets: [
      #"source.refresh={"fields": "blind"}"#, #"source.snapshot={"mode": "initial"}"#,
    ])
    #expect(files.isEmpty, "\(files)")
  }
}
