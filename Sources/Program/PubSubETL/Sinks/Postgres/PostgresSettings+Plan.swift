import Pipeline
import PostgresSink

extension PostgresSettings: PlanningSink {
  func plan(
    _ layouts: [RecordLayout], through stages: StageChain, _ configuration: PipelineConfiguration
  ) throws -> SinkPlan {
    let plan = try TableCatalog.plan(
      try layouts.filter { try stages.bringsRows(of: $0) }.map { try stages.layout(for: $0) },
      self.sink(of: configuration),
      feeder: configuration.feeder(self))
    return SinkPlan(
      text: "-- sink '\(self.name)'\(plan.sql.isEmpty ? ": nothing is missing" : "")\n\(plan.sql)",
      consequences: self.consequences(plan) + self.incompleteColumns(configuration))
  }

  /// Columns that the next run reads. Without the right to see them, none are named.
  private func incompleteColumns(_ configuration: PipelineConfiguration) -> [String] {
    let tables = try? CheckpointTable(
      pipeline: configuration.name, sink: self.name, self.sink(of: configuration)
    ).freshness()
    return (tables ?? []).filter { !$0.fillingColumns.isEmpty }.map { table in
      "sink '\(self.name)': table \(table.table): not read for all records yet: "
        + table.fillingColumns.joined(separator: ", ")
    }
  }

  /// What the contract makes of it.
  private func consequences(_ plan: TablePlan) -> [String] {
    plan.refusals.map { "sink '\(self.name)': a run would end with 65: \($0)" }
      + plan.notes.map { "sink '\(self.name)': \($0)" }
      + plan.outdatedViews.flatMap {
        PipelineStatus.lines("sink '\(self.name)': \($0.message)", with: $0.statements)
      }
      + plan.discarded.sorted { $0.key < $1.key }.map { entity, fields in
        "sink '\(self.name)': contract discard: \(entity): left out for want of a column: "
          + fields.joined(separator: ", ")
      }
  }
}
