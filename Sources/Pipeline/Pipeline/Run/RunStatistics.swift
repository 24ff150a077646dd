/// The progress of a run; read by the progress line and the report.
public struct RunStatistics: Sendable {
  public struct Topic: Sendable {
    public var name: String
    /// Events of all responses received, including repeated ones.
    public var delivered = 0
    /// Responses received, including empty ones.
    public var responses = 0
    /// Credit that was open after the last response.
    public var pendingCredit = 0
    /// Everything taken, committed or not.
    public internal(set) var taken = Tally()
    /// The totals of all commits that every store has finished. A report shows nothing else,
    /// because the next run begins after them.
    public internal(set) var committed = Tally()
    /// Events sent again after a resume, dropped.
    public var repeated = 0
    /// Events with a commit time in the future by the service's own clock.
    public var futureCommits = 0
    public var retries = 0
    /// Why the stream is not open; nil while it is.
    public var lastFailure: SourceFailure?
    /// Why the service has refused the topic; nil once it delivers again.
    public var refusal: SourceFailure?
    /// How often the stored position was unusable and the policy chose another one.
    public var holes = 0
    public var caughtUpBy: String?
    public var epoch = 1
    public var resume: ReplayID?

    public init(name: String) { self.name = name }

    /// Counts an event whose rows are written; called for each event.
    mutating func took(
      _ event: RecordBatch.Event, replayID: UnsafeBufferPointer<UInt8>, entity: String,
      latestCommit: Int64
    ) {
      if self.taken.firstReplayID == nil { self.taken.firstReplayID = ReplayID(replayID) }
      self.taken.rows += event.rowCount
      if event.kind != .change, event.kind != .event {
        self.taken.attention[Attention(entity: entity, kind: event.kind), default: 0] += 1
      }
      if let time = event.commitTimestamp {
        if time > latestCommit {
          self.futureCommits += 1
        } else if CommitTime.range.contains(time) {
          self.taken.newestCommit = max(self.taken.newestCommit ?? time, time)
        }
      }
    }
  }

  /// The totals of a topic's events up to some place in its stream.
  public struct Tally: Sendable {
    /// Events written to every sink, or to the dead letters.
    public var events = 0
    /// Rows decoded.
    public var rows = 0
    /// Decoded rows that stages of the pipeline removed.
    public var leftOut = 0
    /// Events that have become dead letters: not decoded, or refused.
    public var deadLetters = 0
    /// Dead letters that could be decoded and were refused by a database or by a stage of one sink.
    public var refused = 0
    /// The number of events that require a reread, by entity and kind.
    public var attention: [Attention: Int] = [:]
    public var firstReplayID: ReplayID?
    public var lastReplayID: ReplayID?
    /// The newest commit time that is not in the future, in milliseconds since 1970.
    public var newestCommit: Int64?
    /// Every change committed before this time is exported; milliseconds since 1970, nil if
    /// unknown.
    public var completeThrough: Int64?
  }

  /// Records that were read in addition to the stream.
  public struct Reads: Sendable {
    /// Rows read in this run.
    public var rows = 0
    /// Records that could not become rows.
    public var unreadable = 0
    /// Those among them that a pass over all records has returned. Repairs request the others again
    /// and again, so no limit counts them.
    public var unwritten = 0
    /// Wrong records that have been read again.
    public var repaired = 0
    /// Records that were requested and not found, because they were purged or are hidden from the
    /// user.
    public var unseen = 0
    /// Why wrong records could not be requested.
    public var repairFailure: SourceFailure?
    /// The passes that this run has continued, by object.
    public var passes: [String: ReadPass] = [:]
    /// When records last arrived.
    public var progressedAt: ContinuousClock.Instant?

    mutating func note(_ pass: ReadPass) { self.passes[pass.key] = pass }
  }

  public struct Attention: Hashable, Sendable {
    public var entity: String
    public var kind: EventKind
  }

  public var topics: [Topic]
  public var commits = 0
  public var reads = Reads()

  public init(topics: [String]) { self.topics = topics.map { Topic(name: $0) } }

  public var delivered: Int { self.topics.reduce(0) { $0 + $1.delivered } }
  public var holes: Int { self.topics.reduce(0) { $0 + $1.holes } }
  /// Includes dead letters that are not committed yet, because the limits of a run count them.
  var takenDeadLetters: Int { self.topics.reduce(0) { $0 + $1.taken.deadLetters } }

  // Committed.
  public var exported: Int { self.topics.reduce(0) { $0 + $1.committed.events } }
  public var rows: Int { self.topics.reduce(0) { $0 + $1.committed.rows } }
  public var leftOut: Int { self.topics.reduce(0) { $0 + $1.committed.leftOut } }
  public var deadLetters: Int { self.topics.reduce(0) { $0 + $1.committed.deadLetters } }
  public var refused: Int { self.topics.reduce(0) { $0 + $1.committed.refused } }
  public var newestCommit: Int64? { self.topics.compactMap(\.committed.newestCommit).max() }
}
