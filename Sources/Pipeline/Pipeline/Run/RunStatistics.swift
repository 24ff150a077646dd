/// The progress of a run; read by the progress line and the report.
package struct RunStatistics: Sendable {
  package struct Topic: Sendable {
    package var name: String
    /// Events of all responses received, including repeated ones.
    package var delivered = 0
    /// Responses received, including empty ones.
    package var responses = 0
    /// Responses received without events.
    package internal(set) var keepalives = 0
    /// Credit that was open after the last response.
    package var pendingCredit = 0
    /// Everything taken, committed or not.
    package internal(set) var taken = Tally()
    /// The totals of all commits that every store has finished. A report shows nothing else,
    /// because the next run begins after them.
    package internal(set) var committed = Tally()
    /// Events sent again after a resume, dropped.
    package var repeated = 0
    /// Events with a commit time in the future by the service's own clock.
    package var futureCommits = 0
    package var retries = 0
    /// Streams opened.
    package internal(set) var openings = 0
    /// When the open stream was opened, in milliseconds since 1970; nil while none is open.
    package internal(set) var openedAt: Int64?
    /// From the commit in Salesforce until an event is durable; empty unless times are measured.
    package internal(set) var lag = TimeHistogram.lag
    /// From the arrival of an event until it is durable; empty unless times are measured.
    package internal(set) var processing = TimeHistogram.processing
    /// Why the stream is not open; nil while it is.
    package var lastFailure: SourceFailure?
    /// Why the service has refused the topic; nil once it delivers again.
    package var refusal: SourceFailure?
    /// How often the stored position was unusable and the policy chose another one.
    package var holes = 0
    /// Milliseconds from the commit of the newest change in Salesforce until it was durable; nil before
    /// the first change.
    package internal(set) var newestLag: Int64?
    /// The place of the next event when the run began.
    package internal(set) var begin: StreamPlace?
    package var caughtUpBy: String?
    /// The run waits for nothing more of this topic; never true for a run that follows.
    package internal(set) var isCaughtUp = false
    /// Nil unless the run ends when this topic has been silent for long enough.
    package internal(set) var silence: CaughtUp.Silence?
    /// The run goes on only until a keepalive of this topic has come.
    package internal(set) var awaitsPosition = false
    package var epoch = 1
    package var resume: ReplayID?

    package init(name: String) { self.name = name }

    /// Counts events of a batch whose rows are written, at least one.
    mutating func took(_ events: Range<Int>, of batch: RecordBatch, latestCommit: Int64) {
      if self.taken.firstReplayID == nil {
        let first = batch.events[events.lowerBound]
        self.taken.firstReplayID = ReplayID(batch.bytes(first.replayID))
      }
      for index in events {
        self.taken.rows += batch.events[index].rowCount
        let kind = batch.events[index].kind
        if kind != .change, kind != .event {
          let attention = Attention(entity: batch.layout.entity, kind: kind)
          self.taken.attention[attention, default: 0] += 1
        }
        guard let time = batch.events[index].commitTimestamp else { continue }
        if time > latestCommit {
          self.futureCommits += 1
        } else if CommitTime.range.contains(time) {
          self.taken.firstCommit = self.taken.firstCommit ?? time
          self.taken.newestCommit = max(self.taken.newestCommit ?? time, time)
        }
      }
    }
  }

  /// The totals of a topic's events up to some place in its stream.
  package struct Tally: Sendable {
    /// Events written to every sink, or to the dead letters.
    package var events = 0
    /// Rows decoded.
    package var rows = 0
    /// Decoded rows that stages of the pipeline removed.
    package var leftOut = 0
    /// Events that have become dead letters: not decoded, or refused.
    package var deadLetters = 0
    /// Dead letters that could be decoded and were refused by a database or by a stage of one sink.
    package var refused = 0
    /// The number of events that require a reread, by entity and kind.
    package var attention: [Attention: Int] = [:]
    package var firstReplayID: ReplayID?
    package var lastReplayID: ReplayID?
    /// The commit time of the first change of this run, in milliseconds since 1970; not in the future.
    package var firstCommit: Int64?
    /// The newest commit time that is not in the future, in milliseconds since 1970.
    package var newestCommit: Int64?
    /// Every change committed before this time is exported; milliseconds since 1970, nil if
    /// unknown.
    package var completeThrough: Int64?
    /// When the position was last known to be retained by the service, in milliseconds since 1970;
    /// nil if unknown.
    package var confirmedAt: Int64?
    /// The place of the next event.
    package var end: StreamPlace?
  }

  /// Records that were read in addition to the stream.
  package struct Reads: Sendable {
    /// Rows read in this run.
    package var rows = 0
    /// Records that could not become rows.
    package var unreadable = 0
    /// Those among them that a pass over all records has returned. Repairs request the others again
    /// and again, so no limit counts them.
    package var unwritten = 0
    /// Wrong records that have been read again.
    package var repaired = 0
    /// Records that were requested and not found, because they were purged or are hidden from the
    /// user.
    package var unseen = 0
    /// Why wrong records could not be requested.
    package var repairFailure: SourceFailure?
    /// The passes that this run has continued, by object.
    package var passes: [String: ReadPass] = [:]
    /// When records last arrived.
    package var progressedAt: ContinuousClock.Instant?

    mutating func note(_ pass: ReadPass) { self.passes[pass.key] = pass }
  }

  /// A kind of calls that a store gets.
  package enum StorePhase: String, Sendable {
    case makeReady = "make_ready"
    case write, seal, prepare, commit, complete
  }

  package struct Store: Sendable {
    package var name: String
    /// The time in its calls; empty unless times are measured.
    package internal(set) var times: [StorePhase: Duration] = [:]
  }

  package struct Attention: Hashable, Sendable {
    package var entity: String
    package var kind: EventKind
  }

  package var topics: [Topic]
  /// In the order of the runner's stores; none before there is a runner.
  package internal(set) var stores: [Store] = []
  package var commits = 0
  /// When the last commit was complete, in milliseconds since 1970; nil before the first one.
  package internal(set) var lastCommitAt: Int64?
  package var reads = Reads()

  /// - Parameter positions: as stored before the run, by topic.
  package init(topics: [String], positions: [String: TopicPosition] = [:]) {
    self.topics = topics.map { name in
      var topic = Topic(name: name)
      topic.committed.confirmedAt = positions[name]?.confirmedAt
      return topic
    }
  }

  package var delivered: Int { self.topics.reduce(0) { $0 + $1.delivered } }
  package var holes: Int { self.topics.reduce(0) { $0 + $1.holes } }
  /// Includes dead letters that are not committed yet, because the limits of a run count them.
  var takenDeadLetters: Int { self.topics.reduce(0) { $0 + $1.taken.deadLetters } }

  // Committed.
  package var exported: Int { self.topics.reduce(0) { $0 + $1.committed.events } }
  package var rows: Int { self.topics.reduce(0) { $0 + $1.committed.rows } }
  package var leftOut: Int { self.topics.reduce(0) { $0 + $1.committed.leftOut } }
  package var deadLetters: Int { self.topics.reduce(0) { $0 + $1.committed.deadLetters } }
  package var refused: Int { self.topics.reduce(0) { $0 + $1.committed.refused } }
  package var newestCommit: Int64? { self.topics.compactMap(\.committed.newestCommit).max() }
}
