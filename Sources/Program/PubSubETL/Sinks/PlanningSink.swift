import Pipeline

/// A sink whose tables have to fit before rows come: `plan` says what a run would do to them.
protocol PlanningSink: ConfiguredSink {
  /// Compares the layouts with the existing tables; changes nothing.
  ///
  /// - Parameters:
  ///   - layouts: after the stages of the pipeline, a layout per topic.
  ///   - stages: those of the sink.
  func plan(
    _ layouts: [RecordLayout], through stages: StageChain, _ configuration: PipelineConfiguration
  ) throws -> SinkPlan
}

struct SinkPlan {
  /// SQL with a comment before it.
  var text: String
  /// What else a run would make of it, one sentence each.
  var consequences: [String]
}
