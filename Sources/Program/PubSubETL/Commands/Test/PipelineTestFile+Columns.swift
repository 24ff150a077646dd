import Clocks
import Pipeline
import PubSubSource

extension PipelineTestFile {
  /// Compares the columns that stages name with the schemas of the cases, as a run does with those of the
  /// service.
  ///
  /// - Returns: for names that a topic without a case may have, one sentence each.
  /// - Throws: `RunFailure` (78) when all topics have a case and no schema has the name.
  func checkColumns() throws -> [String] {
    let stages = RunStages(
      self.configuration, org: self.org, classification: self.classification)
    var seen: Set<SchemaOfTopic> = []
    for event in self.cases.flatMap(\.events) {
      guard seen.insert(SchemaOfTopic(topic: event.topic, id: event.schemaID)).inserted else {
        continue
      }
      let decoder = try AvroEventDecoder(
        json: event.schema, schemaID: event.schemaID, topic: event.topic,
        options: PipelineAssembly(configuration: self.configuration, clock: ProcessClock()).decoding
      )
      try stages.show(decoder.layout)
    }
    let findings = stages.findings()
    guard !findings.isEmpty, !seen.isEmpty else { return [] }
    let topics = self.configuration.source.topics.map(\.name)
    // A channel has more objects than its cases need.
    let untold = topics.filter { topic in
      TopicName.isChannel(topic) || !seen.contains { $0.topic == topic }
    }
    guard untold.isEmpty else {
      return findings.map { finding in
        "\(finding.sentence(schemas: "of the cases")); \(RunStages.Finding.remedy([finding]))"
      }
    }
    throw RunFailure(
      .stages,
      "\(self.configuration.file): "
        + findings.map { $0.sentence(schemas: "of the cases") }.joined(separator: "; ")
        + "; \(RunStages.Finding.remedy(findings))")
  }

  private struct SchemaOfTopic: Hashable {
    var topic: String
    var id: String
  }
}
