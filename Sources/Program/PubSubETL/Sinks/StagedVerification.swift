import FileSink
import Pipeline

/// A comparison behind the stages of its sink, which records pass as events do.
final class StagedVerification: CopyVerification {
  private let base: any CopyVerification
  private let stages: StageChain

  init(_ base: any CopyVerification, stages: StageChain) {
    self.base = base
    self.stages = stages
  }

  /// Passes a batch through the stages.
  ///
  /// - Returns: all records without a row: the given ones, those that the stages refuse, and those
  ///   that any stage has left out.
  private func apply(_ batch: RecordBatch, _ omitted: [OmittedRecord]) throws -> [OmittedRecord] {
    try self.stages.apply(to: batch)
    return omitted + self.stages.takeUnreadable().map { OmittedRecord(.refused, $0) }
      + batch.leftOutRecords
  }

  func take(_ batch: RecordBatch, omitted: [OmittedRecord]) throws {
    try FileSinkError.telling {
      try self.base.take(batch, omitted: self.apply(batch, omitted))
    }
  }

  func startOver() throws { try FileSinkError.telling { try self.base.startOver() } }

  func finishPass() throws { try FileSinkError.telling { try self.base.finishPass() } }

  func sample(_ count: Int) throws -> [String] {
    try FileSinkError.telling { try self.base.sample(count) }
  }

  func takeSample(_ batch: RecordBatch, omitted: [OmittedRecord]) throws {
    try FileSinkError.telling {
      try self.base.takeSample(batch, omitted: self.apply(batch, omitted))
    }
  }

  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String] {
    try FileSinkError.telling {
      try self.base.candidates(inRound: round, after: id, limit: limit)
    }
  }

  func lookAgain() throws { try FileSinkError.telling { try self.base.lookAgain() } }

  func takeAgain(
    _ batch: RecordBatch, asked: [String], missing: [String], omitted: [OmittedRecord], round: Int
  ) throws {
    try FileSinkError.telling {
      try self.base.takeAgain(
        batch, asked: asked, missing: missing, omitted: self.apply(batch, omitted), round: round)
    }
  }

  func findings(idLimit: Int) throws -> CopyFindings {
    try FileSinkError.telling { try self.base.findings(idLimit: idLimit) }
  }

  func noteForRepair() throws { try FileSinkError.telling { try self.base.noteForRepair() } }
}
