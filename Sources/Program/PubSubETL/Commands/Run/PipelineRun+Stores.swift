import Checkpoint
import FileSink
import JSON
import Logging
import Pipeline
import SalesforceAuth

/// The sinks of a run, recovered, with the stores that take the rows.
struct RunStores {
  let sinks: OpenSinks
  /// The checkpoint with the sinks whose state it holds, and the dead letters.
  let checkpointed: CheckpointedStore
  let databases: [StagedStore]
  /// Where each store begins, in the order of `all`.
  let positions: [[String: TopicPosition]]
  let checkpoints: CheckpointPace

  var all: [StagedStore] { [StagedStore(self.checkpointed)] + self.databases }

}

extension PipelineRun {
  /// Opens the sinks, brings what an earlier run left into line with the checkpoint, and finds out
  /// where each begins.
  ///
  /// - Parameter succession: nil on a first run.
  func openStores(
    _ session: Session, _ store: FileCheckpointStore, _ document: CheckpointDocument?,
    _ succession: SinkSuccession?
  ) throws -> RunStores {
    let context = SinkContext(
      configuration: self.configuration, org: session.org, options: self.options,
      owner: try session.assembly.owner(store), retry: session.retry, logger: self.logger,
      log: self.log, interruption: self.interruption, clock: self.clock)
    let sinks = try OpenSinks(context, states: succession?.states ?? [:])
    do {
      let faults = try sinks.survey()
      if document == nil { try sinks.checkAreNew() }
      try self.noteAccepted(faults)
      try sinks.connect()
      let positions = try self.startingPositions(document, sinks, context)
      try sinks.recover()
      let erased = try sinks.erasedRecords()
      session.stages.pipeline.erased = erased
      let deadLetters = try context.deadLetters(recoveredFrom: document?.deadLetters)
      deadLetters.erased = erased
      try self.noteAccepted(deadLetters.acceptedFaults)
      let removed = try SinkRegistry.finishRemoved(
        succession, pipeline: self.configuration.name, org: session.org, clock: self.clock
      ) { self.logger.log(level: $0, "\($1)") }
      let checkpoints = CheckpointPace(
        store, isNeeded: self.configuration.needsCheckpoint, clock: self.clock)
      let staged = sinks.staged(session.stages)
      let checkpointed = CheckpointedStore(
        sinks: staged.checkpointed, deadLetters: deadLetters,
        save: self.saving(in: checkpoints, session, document, sinks, removed))
      return RunStores(
        sinks: sinks, checkpointed: checkpointed, databases: staged.stores, positions: positions,
        checkpoints: checkpoints)
    } catch {
      sinks.close()
      throw error
    }
  }

  /// Makes and stores the checkpoints of this run.
  private func saving(
    in checkpoints: CheckpointPace, _ session: Session, _ document: CheckpointDocument?,
    _ sinks: OpenSinks, _ removed: [String: RemovedSink]
  ) -> CheckpointedStore.Save {
    let (name, stages) = (self.configuration.name, session.stages)
    let matched = document?.matchedColumns ?? [:]
    // Positions of topics that are no longer in the pipeline file are kept, so that a misspelled
    // name does not lose the position of the correct one.
    let ownTopics = Set(self.configuration.source.topics.map(\.name))
    let otherTopics = document?.topics.filter { !ownTopics.contains($0.key) } ?? [:]
    var positionStates: [String: SinkState] = [:]
    for (settings, sink) in sinks.keepers {
      positionStates[settings.name] = sink.checkpointState
    }
    return { topics, states, letters in
      var next = CheckpointDocument(
        pipeline: name, org: session.org,
        topics: topics.merging(otherTopics) { own, _ in own },
        sinks: states.mapValues { SinkState($0) }.merging(positionStates) { own, _ in own },
        removedSinks: removed, deadLetters: SinkState(letters))
      next.instance = session.token.instanceURL
      next.matchedColumns = stages.matched(since: matched)
      try checkpoints.save(next)
    }
  }

  /// Notes accepted losses of output in the journal.
  private func noteAccepted(_ faults: [String]) throws {
    guard !faults.isEmpty else { return }
    for fault in faults { self.logger.warning("accepted: \(fault)") }
    try CheckpointJournal.append(
      self.configuration.statePaths, command: "run --accept-missing", topic: nil,
      old: .array(faults.map { .string($0) }), new: nil, clock: self.clock)
  }
}
