import Clocks
import JSON
import Pipeline
import PubSubSource

/// Sends the events of a case through decoder, stages and the encoder of each sink, as a run does.
/// Stores nothing and connects to nothing.
struct PipelineTestRun {
  let configuration: PipelineConfiguration
  let org: String
  /// Nil where no stage masks by it.
  var classification: OrgClassification?

  struct Outcome {
    /// What every sink got, in the order of the pipeline file.
    var lines: [(sink: String, lines: [JSONValue])] = []
    var letters: [ExpectedLetter] = []
  }

  private struct DecoderKey: Hashable {
    var schemaID: String
    var topic: String
  }

  /// - Throws: what a mistake in the stages throws that the events' schemas show.
  func outcome(of test: PipelineTestCase) throws -> Outcome {
    var outcome = Outcome()
    for sink in self.configuration.sinks {
      let (lines, letters) = try self.lines(of: sink, test.events)
      outcome.lines.append((sink.name, lines))
      // What the pipeline refuses is the same for all sinks.
      outcome.letters += letters.filter { $0.sink != nil || !outcome.letters.contains($0) }
    }
    outcome.letters.sort { $0.event < $1.event }
    return outcome
  }

  private func lines(
    of sink: any ConfiguredSink, _ events: [PipelineTestEvent]
  ) throws -> (lines: [JSONValue], letters: [ExpectedLetter]) {
    // Each sink sees the events once, as does each stage: some remember what they have seen.
    let stages = RunStages(
      self.configuration, org: self.org, classification: self.classification)
    let own = stages.chain(of: sink)
    let preview = sink.preview(self.configuration)
    var decoders: [DecoderKey: AvroEventDecoder] = [:]
    var lines: [JSONValue] = []
    var letters: [ExpectedLetter] = []
    for (index, event) in events.enumerated() {
      func refuse(_ reason: String, by sink: String? = nil) {
        letters.append(ExpectedLetter(event: index + 1, sink: sink, reason: reason))
      }
      let key = DecoderKey(schemaID: event.schemaID, topic: event.topic)
      let decoder = try decoders[key] ?? self.decoder(event)
      decoders[key] = decoder
      let batch = RecordBatch(layout: decoder.layout)
      do throws(EventDecodingError) {
        try Self.decode(event, decoder, into: batch)
      } catch {
        refuse(error.reason)
        continue
      }
      batch.events[0].ordinal = Int64(index)
      try stages.pipeline.apply(to: batch)
      for refused in stages.pipeline.takeRefusedEvents() { refuse(refused.reason) }
      try own.apply(to: batch)
      for refused in own.takeRefusedEvents() { refuse(refused.reason, by: sink.name) }
      for index in batch.events.indices {
        do {
          lines += try preview.lines(ofEvent: index, of: batch)
        } catch let error as RefusedLine {
          refuse(error.reason, by: sink.name)
        }
      }
    }
    return (lines, letters)
  }

  private func decoder(_ event: PipelineTestEvent) throws -> AvroEventDecoder {
    try AvroEventDecoder(
      json: event.schema, schemaID: event.schemaID, topic: event.topic,
      options: PipelineAssembly(configuration: self.configuration, clock: ProcessClock()).decoding)
  }

  private static func decode(
    _ event: PipelineTestEvent, _ decoder: AvroEventDecoder, into batch: RecordBatch
  ) throws(EventDecodingError) {
    var failure: EventDecodingError?
    Array(event.eventID.utf8).withUnsafeBufferPointer { eventID in
      event.replayID.withUnsafeBufferPointer { replayID in
        event.payload.withUnsafeBufferPointer { payload in
          do throws(EventDecodingError) {
            _ = try decoder.decode(
              eventID: eventID, replayID: replayID, payload: payload, into: batch)
          } catch {
            failure = error
          }
        }
      }
    }
    if let failure { throw failure }
  }
}
