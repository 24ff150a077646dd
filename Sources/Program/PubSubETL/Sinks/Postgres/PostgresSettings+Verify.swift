import Bytes
import Pipeline
import PostgresClient
import PostgresSink

extension PostgresSettings: VerifyingSink {
  func verifyObstacle(_ configuration: PipelineConfiguration) -> String? {
    guard self.sink.mode == .history else { return nil }
    return "sink '\(self.name)' has mode history, so there are no current rows to compare"
  }

  var repairObstacle: String? { nil }

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
        states.objects[freshness.entity] = .unread
      } else if !freshness.fillingColumns.isEmpty {
        let columns = freshness.fillingColumns.joined(separator: ", ")
        states.objects[freshness.entity] = .incomplete(
          "the records lack values of new columns (\(columns)), which the next run reads")
      } else if let through = freshness.completeThrough {
        states.objects[freshness.entity] = .complete(through: through)
      } else {
        states.objects[freshness.entity] = .incomplete("how far it is complete is not yet known")
      }
    }
    return states
  }

  func verification(
    of layout: RecordLayout, _ scope: CopyScope, _ configuration: PipelineConfiguration
  ) throws -> any CopyVerification {
    let connection = try PostgresConnection(self.sink.connection.prompt)
    let catalog = TableCatalog(self.sink(of: configuration), feeder: nil)
    let found = try self.sink.explaining {
      try connection.quickly {
        try catalog.verifiedTable(for: layout, excluding: scope.excluded, over: connection)
      }
    }
    guard let table = found else {
      throw RunFailure(
        .lostTable,
        "sink '\(self.name)' has no current table of \(layout.entity); the next run makes it")
    }
    return try TableVerification(
      table, layout: layout, horizon: scope.horizon, comparesStamps: scope.comparesStamps,
      over: connection)
  }
}

extension PostgresSettings: FormulaSink {
  func formulas(
    of entity: String, horizon: Int64, _ configuration: PipelineConfiguration
  ) throws -> (any FormulaVerification)? {
    let connection = try PostgresConnection(self.sink.connection.prompt)
    let catalog = TableCatalog(self.sink(of: configuration), feeder: nil)
    return try self.sink.explaining {
      try connection.quickly {
        try FormulaComparison(of: entity, catalog, horizon: horizon, over: connection)
      }
    }
  }
}

extension FormulaComparison: FormulaVerification {}

extension TableVerification: RepairingVerification {
  func take(_ batch: RecordBatch, omitted: [OmittedRecord], of reading: CopyReading) throws {
    switch reading {
    case .all: try self.take(batch, omitted: omitted)
    case .sample: try self.takeSample(batch, omitted: omitted)
    case .again(let asked, let missing, let round):
      try self.takeAgain(batch, asked: asked, missing: missing, omitted: omitted, round: round)
    }
  }
}
