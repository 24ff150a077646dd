import Pipeline
import SchemaStore

/// What a run knows about itself at one moment. A value, so that a scrape does not disturb the run.
struct MetricReading: Sendable {
  let pipeline: String
  var statistics: RunStatistics
  var sinks: [RunReport.Sink] = []
  var retries = RetryLedger()
  var schemas = SchemaCache.Counts()
  var apiCalls = 0
  /// Nil while it is not known.
  var allowance: OrgAllowance?
  /// By sink; none if they were not counted.
  var incorrectRows: [String: [IncorrectRows]] = [:]

  var samples: MetricSamples {
    var samples = MetricSamples()
    for topic in self.statistics.topics { self.add(topic, to: &samples) }
    for sink in self.sinks { self.add(sink, to: &samples) }
    for store in self.statistics.stores {
      for (phase, time) in store.times {
        samples.set(
          .storeSeconds, self.pipeline, store.name, phase.rawValue, to: time / .seconds(1))
      }
    }
    for (cause, count) in self.retries.causes {
      samples.set(.retries, self.pipeline, cause.place, cause.code, to: count)
    }
    samples.set(.commits, self.pipeline, to: self.statistics.commits)
    samples.set(.lastCommit, self.pipeline, toTime: self.statistics.lastCommitAt)
    samples.set(.schemaFetches, self.pipeline, to: self.schemas.fetched)
    samples.set(.schemaCacheHits, self.pipeline, to: self.schemas.cached)
    samples.set(.apiCalls, self.pipeline, to: self.apiCalls)
    let reads = self.statistics.reads
    samples.set(.records, self.pipeline, "read", to: reads.rows)
    samples.set(.records, self.pipeline, "repaired", to: reads.repaired)
    samples.set(.records, self.pipeline, "not_found", to: reads.unseen)
    samples.set(.records, self.pipeline, "unreadable", to: reads.unreadable)
    if let allowance {
      samples.set(.allowanceLimit, self.pipeline, to: allowance.max)
      samples.set(.allowanceLeft, self.pipeline, to: allowance.remaining)
    }
    for (sink, objects) in self.incorrectRows {
      for object in objects {
        samples.set(
          .incorrectRows, self.pipeline, sink, object.object, "stale", to: object.staleCount)
        samples.set(
          .incorrectRows, self.pipeline, sink, object.object, "partial", to: object.partialCount)
        if let count = object.waitingCount {
          samples.set(.incorrectRows, self.pipeline, sink, object.object, "waiting", to: count)
        }
      }
    }
    for (place, waits) in Dictionary(grouping: self.retries.waiting, by: \.place.kind) {
      samples.set(.waiting, self.pipeline, place, to: waits.count)
    }
    samples.set(.buildInfo, Program.version, to: 1)
    return samples
  }

  private func add(_ topic: RunStatistics.Topic, to samples: inout MetricSamples) {
    let (name, committed) = (topic.name, topic.committed)
    samples.set(.delivered, self.pipeline, name, to: topic.delivered)
    samples.set(.repeated, self.pipeline, name, to: topic.repeated)
    samples.set(.events, self.pipeline, name, to: committed.events)
    samples.set(.rows, self.pipeline, name, to: committed.rows - committed.leftOut)
    samples.set(.rowsLeftOut, self.pipeline, name, to: committed.leftOut)
    samples.set(
      .deadLetters, self.pipeline, name, "undecodable",
      to: committed.deadLetters - committed.refused)
    samples.set(.deadLetters, self.pipeline, name, "refused", to: committed.refused)
    for kind in [EventKind.gap, .overflow, .wildcard] {
      let count = committed.attention.reduce(0) { $0 + ($1.key.kind == kind ? $1.value : 0) }
      samples.set(.gapEvents, self.pipeline, name, kind.name, to: count)
    }
    samples.set(.holes, self.pipeline, name, to: topic.holes)
    samples.set(.keepalives, self.pipeline, name, to: topic.keepalives)
    samples.set(.reconnects, self.pipeline, name, to: max(0, topic.openings - 1))
    samples.set(.lag, self.pipeline, name, to: topic.lag)
    samples.set(.processing, self.pipeline, name, to: topic.processing)
    samples.set(.positionConfirmed, self.pipeline, name, toTime: committed.confirmedAt)
    samples.set(.completeThrough, self.pipeline, name, toTime: committed.completeThrough)
    samples.set(.newestCommit, self.pipeline, name, toTime: committed.newestCommit)
    samples.set(.creditPending, self.pipeline, name, to: topic.pendingCredit)
    samples.set(.streamOpened, self.pipeline, name, toTime: topic.openedAt)
  }

  private func add(_ sink: RunReport.Sink, to samples: inout MetricSamples) {
    samples.set(.sinkRows, self.pipeline, sink.name, to: sink.rows)
    samples.set(.sinkReadRows, self.pipeline, sink.name, to: sink.rowsRead)
    // Databases count no bytes.
    if sink.counted == .files || sink.bytes > 0 {
      samples.set(.sinkBytes, self.pipeline, sink.name, to: sink.bytes)
    }
    if sink.counted == .files { samples.set(.sinkFiles, self.pipeline, sink.name, to: sink.files) }
  }

  /// Why the run does not export what arrives, at most one line for each topic or sink; none if it does.
  var obstacles: [String] {
    let closed = self.statistics.topics.filter { $0.openedAt == nil }.map {
      "topic \($0.name): no open stream"
    }
    return closed + self.retries.waiting.map { "\($0.place.text): retried after a failure" }
  }
}
