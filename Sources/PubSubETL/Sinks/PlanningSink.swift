import Pipeline

/// A sink whose tables have to fit before rows come: `plan` says what a run would do to them.
protocol PlanningSink: ConfiguredSink {
  /// Compares the layouts with the existing tables; changes nothing.
  ///
  /// - Parameter layouts: after the stages of the pipeline, a layout per topic.
  func plan(_ layouts: [RecordLayout], _ configuration: PipelineConfiguration) throws -> SinkPlan
}

struct SinkPlan {
  /// SQL with a comment before it.
  var text: String
  /// What else a run would make of it, one sentence each.
  var consequences: [String]
}
