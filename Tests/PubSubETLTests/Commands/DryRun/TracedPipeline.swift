import JSON
import Pipeline
import PubSubSource

@testable import PubSubETL

/// Sends events through the stages and previews of a pipeline, as a dry run does.
struct TracedPipeline {
  private static let schema = """
    { "type": "record", "name": "ContactChangeEvent", "fields": [
      { "name": "ChangeEventHeader", "type": { "type": "record", "name": "ChangeEventHeader", "fields": [
        { "name": "entityName", "type": "string" },
        { "name": "recordIds", "type": { "type": "array", "items": "string" } },
        { "name": "changeType", "type": { "type": "enum", "name": "ChangeType", "symbols": ["CREATE", "UPDATE"] } },
        { "name": "commitTimestamp", "type": "long" },
        { "name": "nulledFields", "type": { "type": "array", "items": "string" } },
        { "name": "diffFields", "type": { "type": "array", "items": "string" } },
        { "name": "changedFields", "type": { "type": "array", "items": "string" } } ] } },
      { "name": "Email", "type": ["null", "string"] },
      { "name": "Score", "type": ["null", "double"] },
      { "name": "Stage", "type": ["null", "string"] },
      { "name": "Address", "type": ["null", { "type": "record", "name": "Address", "fields": [
        { "name": "City", "type": ["null", "string"] }, { "name": "Street", "type": ["null", "string"] } ] }] } ] }
    """

  let file: PipelineTestFile

  /// - Parameters:
  ///   - stages: of the pipeline, as JSON.
  ///   - sinks: as JSON.
  ///   - events: the fields of each, and the number of its records.
  init(
    stages: String, sinks: String = #"{ "type": "files", "directory": "out" }"#,
    _ events: (fields: String, records: Int)...
  ) throws {
    let pipeline = try SamplePipeline()
    try pipeline.write(
      SamplePipeline.minimal.replacing(#"{ "type": "files", "directory": "out" }"#, with: sinks)
        .replacing(
          #""sinks""#,
          with: #""stages": [\#(stages)], "dead_letter": { "payload": "none" }, "sinks""#),
      to: "p.json")
    let payloads = events.map { fields, records in
      let ids = (1...records).map { #""003000000000\#(100 + $0)AAA""# }.joined(separator: ", ")
      return #"{ "payload": { "ChangeEventHeader": { "changeType": "UPDATE", "recordIds": "#
        + "[\(ids)] }, \(fields) } }"
    }
    try pipeline.write(
      """
      { "schema": \(Self.schema), "cases": [ { "name": "one", "events": [
        \(payloads.joined(separator: ", ")) ], "expect": {} } ] }
      """, to: "p.test.json")
    self.file = try PipelineTestFile.load("\(pipeline.base)/p.test.json")
  }

  func traces(showsMasked: Bool = false) throws -> [EventTrace] {
    let configuration = self.file.configuration
    let stages = RunStages(configuration, org: "")
    // Outside of its module, a key path to a member of an extension of `any ConfiguredSink` crashes
    // (Swift 6.3).
    let traces = EventTraces(
      stages, sinks: configuration.sinks.map { $0.name }, showsMasked: showsMasked)
    let letters = PreviewLetters(traces)
    for (index, event) in self.file.cases[0].events.enumerated() {
      let decoder = try AvroEventDecoder(
        json: event.schema, schemaID: event.schemaID, topic: event.topic)
      let batch = RecordBatch(layout: decoder.layout)
      try Array(event.eventID.utf8).withUnsafeBufferPointer { eventID in
        try event.replayID.withUnsafeBufferPointer { replayID in
          try event.payload.withUnsafeBufferPointer { payload in
            _ = try decoder.decode(
              eventID: eventID, replayID: replayID, payload: payload, into: batch)
          }
        }
      }
      batch.events[0].ordinal = Int64(index)
      try stages.pipeline.apply(to: batch)
      for refused in stages.pipeline.takeRefusedEvents() {
        letters.append(
          DeadLetter(
            topic: event.topic, replayID: ReplayID(event.replayID), eventID: event.eventID,
            schemaID: event.schemaID, payload: event.payload, reason: refused.reason, epoch: 1,
            ordinal: refused.ordinal))
      }
      for sink in configuration.sinks {
        let preview = PreviewSink(name: sink.name, sink.preview(configuration), traces)
        try StagedSink(preview, stages: stages.sinks[sink.name]).write(batch)
      }
    }
    return traces.take()
  }
}
