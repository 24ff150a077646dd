import Pipeline
import PubSubAPI
import PubSubSource

/// The columns that a run's events would have by the schemas of today.
struct PlannedLayouts {
  /// After the stages of the pipeline; a layout per topic, in the pipeline file's order.
  var layouts: [RecordLayout] = []
  /// Topics whose events have schemas that the service tells with the events alone.
  var unknown: [String] = []

  /// Logs in and asks the service. Subscribes to nothing, so costs no delivery.
  static func ask(_ configuration: PipelineConfiguration) async throws -> PlannedLayouts {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, credentials in
      let stages = assembly.stages()
      var planned = PlannedLayouts()
      for topic in configuration.source.topics {
        let found = try await service.subscribableTopic(topic.name, credentials)
        guard !found.schemaID.isEmpty else {
          planned.unknown.append(topic.name)
          continue
        }
        let schema = try await service.schema(
          id: found.schemaID, credentials: try await credentials.credentials())
        let decoder = try AvroEventDecoder(
          json: schema.json, schemaID: found.schemaID, topic: topic.name,
          options: assembly.decoding)
        planned.layouts.append(try stages.layout(for: decoder.layout))
      }
      return planned
    }
  }
}
