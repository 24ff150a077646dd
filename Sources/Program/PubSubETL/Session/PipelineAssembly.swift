internal import Checkpoint
import Clocks
import Glibc
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import SchemaStore
import TLSStream

/// Creates the parts of a run from its configuration. The only place that knows the real ones.
struct PipelineAssembly {
  let configuration: PipelineConfiguration
  let clock: ProcessClock

  /// This process, as identified to stores that others may use.
  func owner(_ store: FileCheckpointStore) throws(CheckpointError) -> RunOwner {
    RunOwner(
      place: "\(HostName.current) \(self.configuration.checkpoint.directory)",
      identity: try store.identity(), processID: getpid())
  }

  func stages(ofOrg org: String, _ classification: OrgClassification? = nil) -> RunStages {
    RunStages(self.configuration, org: org, classification: classification)
  }

  func topics() -> [SourceTopic] {
    self.configuration.source.topics.map { topic in
      let start: StartPoint? =
        switch topic.start {
        case .earliest: .earliest
        case .latest: .latest
        case .replayID(let id): .after(id)
        case nil: self.configuration.source.managed == nil ? nil : .managed
        }
      return SourceTopic(name: topic.name, isChannel: topic.isChannel, start: start)
    }
  }

  /// The schemas of an org that runs of this state directory have seen.
  ///
  /// - Parameter logger: the logger of a run, which stores new schemas; nil to store none.
  func schemas(ofOrg org: String, logger: Logger? = nil) -> SchemaCache {
    SchemaCache(
      directory: self.configuration.statePaths.schemas, org: org, isReadOnly: logger == nil,
      clock: self.clock,
      onFetch: { logger?.info("schema fetched", metadata: ["schema": "\($0)"]) },
      onFailure: { logger?.info("\($0)") })
  }

  func sourceOptions(
    _ options: RunOptions, schemas: SchemaCache, logger: Logger
  ) -> PubSubSourceOptions {
    let until = options.limits.until(self.configuration.run)
    var maxEvents = options.limits.maxEvents
    if case .events(let count) = until { maxEvents = min(count, maxEvents ?? count) }
    var source = PubSubSourceOptions(
      window: self.configuration.source.numRequested,
      readAhead: min(PubSubSourceOptions.readAhead, self.configuration.commit.maxEvents),
      maxEvents: maxEvents,
      retry: self.retrySchedule(options),
      recordIDs: self.decoding.recordIDs,
      isIdentityError: { ($0 as? TLSError)?.needsIntervention == true },
      onUnexpectedSchemaID: { id in
        logger.notice(
          "schema \(id): the ID is not the fingerprint of the schema that came with it")
      })
    // A run with a short `quiet` should not wait longer for the last events than for silence.
    if until == .caughtUp {
      source.drainTime = min(source.drainTime, self.configuration.run.quiet / 10)
    }
    source.schemaCache = schemas
    source.managed = self.configuration.source.managed
    source.subscriptionPatience = self.configuration.retry.subscriptionPatience
    source.onManaged = { notice in
      switch notice {
      case .confirmed(let replayID):
        logger.debug("the service confirmed a position", metadata: ["replay_id": "\(replayID)"])
      case .detour(let reason): logger.warning("\(reason)")
      case .commitFailed(let replayID, let reason):
        logger.warning(
          "the managed subscription did not store replay ID \(replayID), but the export continues: \(reason)"
        )
      case .misplaced(let stored, let asked):
        logger.warning(
          """
          the managed subscription stored replay ID \(stored) when it was asked to store \(asked); the \
          position stored here counts, and the export continues
          """)
      }
    }
    return source
  }

  func retrySchedule(_ options: RunOptions) -> RetrySchedule {
    self.configuration.retry.schedule(
      follows: options.limits.until(self.configuration.run) == .forever)
  }

  var decoding: EventDecodingOptions {
    EventDecodingOptions(recordIDs: self.configuration.source.recordIDs == .array ? .array : .rows)
  }

  func runner(_ options: RunOptions) -> RunnerConfiguration {
    var runner = RunnerConfiguration()
    runner.clock = self.clock
    switch options.limits.until(self.configuration.run) {
    case .caughtUp: runner.until = .caughtUp
    case .forever: runner.until = .forever
    case .events(let count): runner.until = .events(count)
    case .duration(let length): runner.until = .duration(length)
    }
    runner.quiet = self.configuration.run.quiet
    runner.maxEvents = options.limits.maxEvents
    runner.maxDuration = options.limits.maxDuration
    switch self.configuration.source.onInvalidReplay {
    case .fail: runner.onInvalidReplay = .fail
    case .earliest, .snapshot: runner.onInvalidReplay = .earliest
    case .latest: runner.onInvalidReplay = .latest
    }
    runner.refusedDelay = self.configuration.retry.refusedDelay
    runner.maxDeadLetters = self.configuration.deadLetter.max
    runner.maxDeadLetterRatio = self.configuration.deadLetter.maxRatio
    runner.window = self.configuration.source.numRequested
    runner.commitMaxEvents = self.configuration.commit.maxEvents
    runner.commitMaxBytes = self.configuration.commit.maxBytes
    runner.commitMaxDelay = self.configuration.commit.maxDelay
    runner.visibilityWait = self.configuration.source.snapshot.visibilityWait
    runner.passLimit = self.configuration.source.snapshot.maxDuration
    runner.renewAfter = self.configuration.checkpoint.renewAfter
    return runner
  }
}

extension SourceConfiguration.Topic {
  /// Several entities share the stream (TheService.md#topic-names).
  var isChannel: Bool {
    TopicName.isChannel(self.name)
  }
}
