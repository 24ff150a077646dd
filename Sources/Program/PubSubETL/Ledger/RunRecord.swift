import Pipeline

/// What the ledger keeps of a run that has ended.
struct RunRecord: Sendable, Equatable {
  /// What was counted. No count is above `maxCount`, so that those of all lines of a ledger can be
  /// added.
  struct Counts: Sendable, Equatable {
    static let maxCount: Int64 = 1 << 45

    /// Events made durable.
    var events: Int64 = 0
    /// Rows that they made.
    var rows: Int64 = 0
    /// Events that count against the org's allowance.
    var delivered: Int64 = 0
    var redelivered: Int64 = 0
    /// Bytes written to files, compressed.
    var bytes: Int64 = 0
    /// Files finished.
    var files: Int64 = 0
    var commits: Int64 = 0
    var deadLetters: Int64 = 0
    var gaps: Int64 = 0
    /// How often a stored position was unusable, so that events may be missing.
    var holes: Int64 = 0
    /// Records read over REST and Bulk.
    var recordsRead: Int64 = 0
    var recordsRepaired: Int64 = 0
    var apiCalls: Int64 = 0

    /// The members of a line.
    static let members: [(name: String, path: any WritableKeyPath<Counts, Int64> & Sendable)] = [
      ("events", \.events), ("rows", \.rows), ("delivered", \.delivered),
      ("redelivered", \.redelivered), ("bytes", \.bytes), ("files", \.files),
      ("commits", \.commits), ("dead_letters", \.deadLetters), ("gaps", \.gaps),
      ("holes", \.holes), ("records_read", \.recordsRead),
      ("records_repaired", \.recordsRepaired), ("api_calls", \.apiCalls),
    ]
  }

  /// Attempts that failed for one cause and were repeated.
  struct Retry: Sendable, Equatable {
    /// The kind of the place: `topic`.
    var place: String
    var code: String
    var count: Int64
  }

  struct Topic: Sendable, Equatable {
    var name: String
    var events: Int64
    var rows: Int64
    /// The places of the next event when the run began and when it ended; nil if it read nothing.
    var begin: StreamPlace?
    var end: StreamPlace?
    /// Milliseconds from the commit of the newest change until it was durable.
    var lag: Int64?
    /// Milliseconds since 1970; nil unless it is known.
    var completeThrough: Int64?
  }

  struct Sink: Sendable, Equatable {
    var name: String
    var type: String
    /// Absolute directory or name of the database.
    var target: String
    var rows: Int64
    var rowsRead: Int64
    var bytes: Int64
    var files: Int64
  }

  /// Topics of a line; those with the most events are kept.
  static let maxTopicCount = 50
  static let maxSinkCount = 64
  static let maxRetryCount = RetryLedger.maxEntryCount * 2
  /// Scalars of a name, a word or a path.
  static let maxNameLength = 255
  static let maxMessageLength = 1000

  var beginning: RunBeginning
  /// Milliseconds since 1970.
  var endedAt: Int64
  /// 0 to 255.
  var exitCode: Int32
  /// One stable word, perhaps the service's own.
  var reason: String
  /// The error in words; nil after a success.
  var message: String?
  var counts = Counts()
  /// What the org said before the first fetch; nil if it did not.
  var allowance: OrgAllowance?
  var retries: [Retry] = []
  var topics: [Topic] = []
  /// Topics that are not among those.
  var otherTopics: Int64 = 0
  var sinks: [Sink] = []

  /// The greatest lag of a topic, in milliseconds; nil without a change.
  var lag: Int64? { self.topics.compactMap(\.lag).max() }
  var retryCount: Int64 { self.retries.reduce(0) { $0 + $1.count } }
  /// Whether the run was ended by its time limit and has come closer to the end of the stream.
  var isProgress: Bool {
    self.exitCode == ExitCode.tryAgain.rawValue && self.reason == EndReason.maxDuration.rawValue
      && (self.counts.events > 0 || self.counts.recordsRead > 0)
  }
  /// Milliseconds; 0 if the clock was set back.
  var duration: Int64 { max(0, self.endedAt - self.beginning.beganAt) }
}

/// What the ledger has of a run from its beginning on.
struct RunBeginning: Sendable, Equatable {
  enum Command: String, Sendable {
    case run, snapshot
  }

  var id: RunID
  /// The program's.
  var version: String
  var command: Command
  var processID: Int32
  /// Milliseconds since 1970.
  var beganAt: Int64
}

/// What the ledger keeps of a `verify`.
struct VerifyRecord: Sendable, Equatable {
  struct Table: Sendable, Equatable {
    var sink: String
    var object: String
    var verdict: String
    /// Records of the org and of the copy.
    var total: Int64
    /// Those that differ, are missing, or should not be in the copy.
    var drift: Int64
  }

  static let maxTableCount = 200

  var version: String
  /// Milliseconds since 1970.
  var beganAt: Int64
  var endedAt: Int64
  /// The worst of all tables.
  var verdict: String
  /// `records`, `values`, `checksums`.
  var compares: String
  var tables: [Table] = []
}

extension RunRecord {
  /// - Parameter beginning: as it was noted.
  init(_ report: RunReport, _ beginning: RunBeginning) {
    func count(_ number: Int64) -> Int64 { min(max(0, number), Counts.maxCount) }
    func name(_ text: String) -> String { text.cut(to: Self.maxNameLength) }
    self.beginning = beginning
    self.endedAt = report.finishedAt
    self.exitCode = report.exitCode.rawValue
    self.reason = name(report.reason)
    self.message = report.message?.cut(to: Self.maxMessageLength)
    self.allowance = report.allowance.map {
      OrgAllowance(
        max: count($0.max), remaining: min(max(-Counts.maxCount, $0.remaining), Counts.maxCount))
    }
    self.counts.commits = count(report.commits)
    self.counts.deadLetters = count(report.deadLetters)
    self.counts.gaps = count(report.gaps)
    self.counts.recordsRead = count(report.records.read)
    self.counts.recordsRepaired = count(report.records.repaired)
    self.counts.apiCalls = count(report.records.apiCalls)
    for topic in report.topics {
      self.counts.events = count(self.counts.events + topic.events)
      self.counts.rows = count(self.counts.rows + topic.rows)
      self.counts.delivered = count(self.counts.delivered + topic.delivered)
      self.counts.redelivered = count(self.counts.redelivered + topic.redelivered)
      self.counts.holes = count(self.counts.holes + topic.holes)
    }
    for sink in report.sinks {
      self.counts.bytes = count(self.counts.bytes + sink.bytes)
      self.counts.files = count(self.counts.files + Int64(sink.files))
    }
    self.retries = report.retries.causes.map { cause, number in
      Retry(place: cause.place, code: name(cause.code), count: count(Int64(number)))
    }.sorted { ($0.place, $0.code) < ($1.place, $1.code) }
    let topics = report.topics.sorted { $0.events > $1.events }
    self.topics = topics.prefix(Self.maxTopicCount).map { topic in
      Topic(
        name: name(topic.topic), events: count(topic.events), rows: count(topic.rows),
        begin: topic.begin, end: topic.end, lag: topic.lag.map(count),
        completeThrough: topic.completeThrough)
    }
    self.otherTopics = Int64(topics.count - self.topics.count)
    self.sinks = report.sinks.prefix(Self.maxSinkCount).map { sink in
      Sink(
        name: name(sink.name), type: name(sink.type), target: name(sink.target),
        rows: count(sink.rows), rowsRead: count(sink.rowsRead), bytes: count(sink.bytes),
        files: count(Int64(sink.files)))
    }
  }
}

extension String {
  /// - Parameter length: Unicode scalars.
  func cut(to length: Int) -> String {
    let scalars = self.unicodeScalars
    guard scalars.count > length else { return self }
    return String(String.UnicodeScalarView(scalars.prefix(length - 1))) + "…"
  }
}
