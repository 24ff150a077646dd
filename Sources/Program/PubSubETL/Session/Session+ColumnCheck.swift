import Checkpoint
import Logging
import Pipeline
import PubSubAPI

extension Session {
  /// Called before anything is shown: a field that is to be masked must not be shown for a typing
  /// mistake either.
  func checkColumns(_ document: CheckpointDocument?, logger: Logger) async throws {
    guard self.configuration.namesColumns || self.inquiry != nil else { return }
    let planned = try await self.inputLayouts { failure, delay in
      logger.warning("\(failure.message); trying again in \(Phrase.duration(delay))")
    }
    try await self.inquiry?.prepare(planned.inputs)
    let check = try ColumnCheck(self.stages, planned, earlier: document?.matchedColumns ?? [:])
    for warning in check.warnings { logger.warning("\(warning)") }
  }
}
