import Bytes
import Pipeline
import PostgresClient
import PostgresSink

extension PostgresSettings: VerifyingSink {
  func verifyObstacle(_ configuration: PipelineConfiguration) -> String? {
    guard self.sink.mode == .history else { return nil }
    return "sink '\(self.name)' has mode history, so there are no current rows to compare"
  }

  func copyStates(_ configuration: PipelineConfiguration) throws -> CopyStates {
    let table = try CheckpointTable(
      pipeline: configuration.name, sink: self.name, self.sink(of: configuration))
    guard let state = try table.read() else { return CopyStates() }
    var states = CopyStates(org: state.org)
    if state.isLeased {
      states.holder =
        "\(state.owner), until \(UTCTime.timestamp(milliseconds: state.leaseUntil))"
    }
    for freshness in try table.freshness() where freshness.stale != nil {
      if freshness.reading != nil {
        states.objects[freshness.entity] = .incomplete("its records are being read")
      } else if freshness.snapshotAt == nil {
        states.objects[freshness.entity] = .incomplete(
          "its records were not read into the table, which has changes only; 'pubsub-etl snapshot' "
            + "reads them")
      } else if let through = freshness.completeThrough {
        states.objects[freshness.entity] = .complete(through: through)
      } else {
        states.objects[freshness.entity] = .incomplete("how far it is complete is not yet known")
      }
    }
    return states
  }

  func verification(
    of layout: RecordLayout, horizon: Int64, _ configuration: PipelineConfiguration
  ) throws -> any CopyVerification {
    let stages = self.stageChain()
    let output = try stages.layout(for: layout)
    let connection = try PostgresConnection(self.sink.connection)
    let catalog = TableCatalog(self.sink(of: configuration), feeder: nil)
    guard let table = try catalog.verifiedTable(for: output, over: connection) else {
      throw RunFailure(
        .data, reason: "lost_table",
        "sink '\(self.name)' has no current table of \(layout.entity); the next run makes it")
    }
    return PostgresVerification(
      try TableVerification(table, layout: output, horizon: horizon, over: connection),
      stages: stages)
  }
}

/// The comparison of a current table, behind the sink's stages.
private final class PostgresVerification: CopyVerification {
  private let table: TableVerification
  private let stages: StageChain

  init(_ table: TableVerification, stages: StageChain) {
    self.table = table
    self.stages = stages
  }

  private func staged(_ batch: RecordBatch) throws -> RecordBatch {
    try self.stages.apply(to: batch)
    return batch
  }

  func take(_ batch: RecordBatch) throws { try self.table.take(self.staged(batch)) }
  func startOver() throws { try self.table.startOver() }
  func noteUnreadable(_ recordID: String?) throws { self.table.noteUnreadable(recordID) }
  func finishPass() throws { try self.table.finishPass() }
  func sample(_ count: Int) throws -> [String] { try self.table.sample(count) }
  func takeSample(_ batch: RecordBatch) throws { try self.table.takeSample(self.staged(batch)) }
  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String] {
    try self.table.candidates(inRound: round, after: id, limit: limit)
  }
  func takeAgain(
    _ batch: RecordBatch, asked: [String], missing: [String], round: Int
  ) throws {
    try self.table.takeAgain(self.staged(batch), asked: asked, missing: missing, round: round)
  }
  func findings(idLimit: Int) throws -> CopyFindings {
    try self.table.findings(idLimit: idLimit)
  }
  func noteForRepair() throws { try self.table.noteForRepair() }
}
