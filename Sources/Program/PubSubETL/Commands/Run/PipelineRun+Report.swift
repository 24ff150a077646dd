import Logging
import Pipeline
import PubSubSource
import SchemaStore

extension PipelineRun {
  func fill(statistics: RunStatistics, sinks: OpenSinks) {
    self.report.topics = statistics.topics.map { topic in
      var entry = RunReport.Topic(topic: topic.name)
      let committed = topic.committed
      entry.events = Int64(committed.events)
      entry.rows = Int64(committed.rows - committed.leftOut)
      entry.rowsLeftOut = Int64(committed.leftOut)
      entry.delivered = Int64(topic.delivered)
      entry.redelivered = Int64(topic.repeated)
      entry.exported = Int64(committed.events)
      entry.firstReplayID = committed.firstReplayID
      entry.lastReplayID = committed.lastReplayID
      if let rule = topic.caughtUpBy {
        entry.caughtUpBy = RunReport.Topic.CaughtUpRule(rawValue: rule)
      }
      entry.completeThrough = committed.completeThrough
      (entry.firstCommit, entry.newestCommit) = (committed.firstCommit, committed.newestCommit)
      entry.refusal = topic.refusal?.description
      entry.holes = Int64(topic.holes)
      entry.lag = topic.newestLag
      (entry.begin, entry.end) = (topic.begin, committed.end)
      return entry
    }
    self.report.sinks = sinks.reportEntries
    self.report.deadLetters = Int64(statistics.deadLetters)
    self.report.commits = Int64(statistics.commits)
    for topic in statistics.topics {
      self.attend(to: topic)
      guard topic.futureCommits > 0 else { continue }
      self.logger.warning(
        """
        \(topic.futureCommits) events were committed in the future, by the service's own clock; their \
        times say nothing about how far the topic has been read
        """,
        metadata: ["topic": "\(topic.name)"])
    }
  }

  func note(_ counts: SchemaCache.Counts) {
    self.report.schemas = RunReport.Schemas(
      fetched: Int64(counts.fetched), cached: Int64(counts.cached))
  }

  /// The managed subscription at the end of the run; nil without one.
  func noteManaged(_ progress: ManagedProgress?) {
    self.report.managed = progress
    guard let progress, let durable = progress.durable, progress.stored != durable else {
      return
    }
    self.logger.info(
      """
      the managed subscription \(progress.subscription) did not confirm the last position, replay ID \
      \(durable); the position stored here counts, and what the service sends again is dropped
      """)
  }

  /// - Parameter apiCalls: the API calls of this run.
  func fill(reads: RunStatistics.Reads, apiCalls: Int) {
    self.report.records = RunReport.Records(
      read: Int64(reads.rows), repaired: Int64(reads.repaired), notFound: Int64(reads.unseen),
      unreadable: Int64(reads.unreadable), apiCalls: Int64(apiCalls),
      objects: reads.passes.values.sorted { $0.entity < $1.entity }.map { pass in
        RunReport.Records.Object(
          entity: pass.entity, rows: pass.rowCount, total: pass.total,
          isComplete: pass.state == .complete)
      })
    if reads.unseen > 0 {
      self.report.attention.append(
        RunReport.Attention(
          kind: .gaps, topic: nil,
          message:
            "\(Phrase.count(reads.unseen, "record")) could not be read again: deleted without "
            + "an event, or not shared with the run-as user; "
            + "\(reads.unseen == 1 ? "it stays" : "they stay") marked as stale"))
    }
  }

  private func attend(to topic: RunStatistics.Topic) {
    let isRepaired =
      self.configuration.repair.mode == .auto
      && self.configuration.sinks.allSatisfy(\.repairsRecords)
    let consequence =
      if isRepaired {
        "are read again by this run or the next"
      } else if self.configuration.sinks.contains(where: { $0.takesReads && !$0.repairsRecords }) {
        "stay as they are in files until '\(self.configuration.command("snapshot"))' reads them again"
      } else {
        "have to be read again over REST"
      }
    let committed = topic.committed
    for (key, count) in committed.attention.sorted(by: { $0.key.entity < $1.key.entity }) {
      self.report.gaps += Int64(count)
      self.report.attention.append(
        RunReport.Attention(
          kind: .gaps, topic: topic.name,
          message: "\(key.entity): \(Phrase.count(count, "\(key.kind.name) event")); "
            + "\(count == 1 ? "its" : "their") records \(consequence)"))
    }
    if topic.holes > 0 {
      self.report.attention.append(
        RunReport.Attention(
          kind: .holes, topic: topic.name,
          message: "the stored replay ID could not be used; events may be missing before epoch "
            + "\(topic.epoch)"))
    }
    if committed.deadLetters > 0 {
      self.report.attention.append(
        RunReport.Attention(
          kind: .deadLetters, topic: topic.name,
          message: Self.sentence(
            undecodable: committed.deadLetters - committed.refused, committed.refused)
            + "; \(committed.deadLetters == 1 ? "it is" : "they are") in the dead letters "
            + "('dead-letters list' shows why, 'dead-letters retry --all' sends them again)"))
    }
  }

  /// `3 events could not be decoded or processed and 1 event was refused by a sink`
  private static func sentence(undecodable: Int, _ refused: Int) -> String {
    let parts = [
      undecodable > 0
        ? "\(Phrase.count(undecodable, "event")) could not be decoded or processed" : nil,
      refused > 0
        ? "\(Phrase.count(refused, "event")) \(refused == 1 ? "was" : "were") refused by a sink"
        : nil,
    ]
    return parts.compactMap { $0 }.joined(separator: " and ")
  }

  /// The maximum number of topics named in a message.
  private static let maxNamedTopics = 5

  /// Topics that the service refuses decide how an otherwise successful run ends.
  static func refusal(_ outcome: RunOutcome, _ statistics: RunStatistics) -> RunFailure? {
    let refusals = statistics.topics.compactMap(\.refusal)
    guard let first = refusals.first else { return nil }
    switch outcome {
    case .deadLetterLimit: return nil
    case .failed(let failure) where !failure.isOfTopicAlone: return nil
    default: break
    }
    var messages = refusals.prefix(Self.maxNamedTopics).map(\.description)
    if refusals.count > messages.count {
      messages.append("so are \(Phrase.count(refusals.count - messages.count, "other topic"))")
    }
    return RunFailure(
      word: first.reason, code: .refused, messages.joined(separator: "; "))
  }

  /// Sets the exit code and reason of a run that a signal ended before it could read.
  func endBySignal() {
    let follows = self.options.limits.until(self.configuration.run) == .forever
    self.report.exitCode = follows ? .success : .tryAgain
    self.report.reason = EndReason.signal.rawValue
    self.report.message =
      follows
      ? nil : "stopped by a signal before the first event could be read; run again to continue"
  }

  /// Sets the exit code and reason of a run that reached its end.
  func conclude(_ outcome: RunOutcome, statistics: RunStatistics) throws {
    func end(_ code: ExitCode, _ message: String? = nil) {
      self.report.exitCode = code
      self.report.reason = outcome.word
      self.report.message = message
    }
    if let refusal = Self.refusal(outcome, statistics) { throw refusal }
    switch outcome {
    case .caughtUp: end(.success)
    case .eventsReached: end(.success)
    case .durationReached: end(.success)
    case .readingGoesOn: end(.success)
    case .outOfTime:
      let failures = statistics.topics.compactMap { topic in
        topic.lastFailure.map { "; \(topic.name): \($0)" }
      }
      end(
        .tryAgain,
        "the time limit was reached before the end of the stream; run again to continue"
          + failures.joined())
    case .allowanceSpent:
      end(
        .tryAgain,
        "stopped before the end of the stream, because allowance.reserve keeps the rest of the org's "
          + "daily delivered events for others; everything delivered is exported, and a later run "
          + "continues from there")
    case .interrupted(let following):
      end(
        following ? .success : .tryAgain,
        following ? nil : "stopped by a signal before the end of the stream; run again to continue")
    case .noPosition:
      end(
        .tryAgain,
        "no event arrived, so there is no first position to store; run again, or use --follow")
    case .deadLetterLimit(let topic, let limit):
      let count = statistics.deadLetters
      if count == 0, statistics.reads.unwritten > 0 {
        let records = Phrase.count(statistics.reads.unwritten, "record")
        return end(
          .data,
          "\(topic): \(records) of the object could be read but not exported, which is more than "
            + "dead_letter.max allows. The log shows the reasons, and 'status' counts the records. "
            + "Correct the cause; or run again to continue with the next records, or raise "
            + "dead_letter.max")
      }
      let what = Self.sentence(undecodable: count - statistics.refused, statistics.refused)
      let topics = statistics.topics.filter { $0.taken.deadLetters > 0 }.map(\.name)
        .joined(separator: ", ")
      let (member, share) =
        switch limit {
        case .count: ("max", "")
        case .ratio(let events): ("max_ratio", " of \(Phrase.count(events, "event")) of this run")
        }
      end(
        .data,
        "\(topics): \(what)\(share), which is more than dead_letter.\(member) allows. The dead "
          + "letters are in \(self.configuration.deadLetter.directory), and the stored position is "
          + "after them: 'dead-letters list' shows why, 'dead-letters retry --all' sends them again. "
          + "Run again to continue, or raise dead_letter.\(member)")
    case .failed(let failure): throw failure
    }
  }
}
