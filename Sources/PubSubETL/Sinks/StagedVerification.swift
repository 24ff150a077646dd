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

  func take(_ batch: RecordBatch) throws {
    try FileSinkError.telling {
      try self.stages.apply(to: batch)
      try self.base.take(batch)
    }
  }

  func startOver() throws { try FileSinkError.telling { try self.base.startOver() } }

  func noteUnreadable(_ recordID: String?) throws {
    try FileSinkError.telling { try self.base.noteUnreadable(recordID) }
  }

  func finishPass() throws { try FileSinkError.telling { try self.base.finishPass() } }

  func sample(_ count: Int) throws -> [String] {
    try FileSinkError.telling { try self.base.sample(count) }
  }

  func takeSample(_ batch: RecordBatch) throws {
    try FileSinkError.telling {
      try self.stages.apply(to: batch)
      try self.base.takeSample(batch)
    }
  }

  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String] {
    try FileSinkError.telling {
      try self.base.candidates(inRound: round, after: id, limit: limit)
    }
  }

  func takeAgain(
    _ batch: RecordBatch, asked: [String], missing: [String], round: Int
  ) throws {
    try FileSinkError.telling {
      try self.stages.apply(to: batch)
      try self.base.takeAgain(batch, asked: asked, missing: missing, round: round)
    }
  }

  func findings(idLimit: Int) throws -> CopyFindings {
    try FileSinkError.telling { try self.base.findings(idLimit: idLimit) }
  }

  func noteForRepair() throws { try FileSinkError.telling { try self.base.noteForRepair() } }
}
