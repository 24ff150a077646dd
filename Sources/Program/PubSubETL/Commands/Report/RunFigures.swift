internal import Bytes
import Pipeline

/// The figures of a ledger for the report: in all, by time, and by what they belong to.
struct RunFigures {
  /// What happened within an hour or a day.
  struct Period: Sendable, Equatable {
    /// Milliseconds since 1970.
    var beginsAt: Int64
    var runs: Int64 = 0
    /// Runs with an exit code other than 0, and those without a report.
    var failures: Int64 = 0
    var retries: Int64 = 0
    var events: Int64 = 0
    var recordsRead: Int64 = 0
    var bytes: Int64 = 0
    /// Milliseconds; nil without a run that ended.
    var longestRun: Int64?
    /// Milliseconds; nil without a change.
    var longestLag: Int64?
    /// The lowest; nil if no run learned it.
    var allowanceLeft: Int64?
  }

  /// A reason for which runs ended.
  struct Ending: Sendable, Equatable {
    var exitCode: Int32
    var reason: String
    var count: Int64 = 0
    /// Milliseconds since 1970.
    var lastAt: Int64
    var lastMessage: String?
  }

  private static let hour: Int64 = 3_600_000
  static let day: Int64 = 24 * hour
  /// Periods of the charts; older runs are in the sums only.
  private static let maxPeriodCount: Int64 = 60

  let items: [RunHistory.Item]
  /// The length of a period: an hour or a day.
  let periodLength: Int64
  /// One after another, those without runs included.
  private(set) var periods: [Period] = []
  private(set) var total = RunRecord.Counts()
  private(set) var runCount: Int64 = 0
  private(set) var failureCount: Int64 = 0
  private(set) var lastSuccess: RunRecord?
  private(set) var lastVerdict: VerifyRecord?
  private(set) var endings: [Ending] = []
  private(set) var retries: [RunRecord.Retry] = []
  /// By name; the newest run that has one gives what cannot be added.
  private(set) var topics: [RunRecord.Topic] = []
  private(set) var sinks: [RunRecord.Sink] = []

  init(_ items: [RunHistory.Item]) {
    self.items = items
    let times = items.map(\.beganAt)
    let (first, last) = (times.min() ?? 0, times.max() ?? 0)
    self.periodLength = last - first < 2 * Self.day ? Self.hour : Self.day
    guard !items.isEmpty else { return }
    let length = self.periodLength
    func start(_ time: Int64) -> Int64 {
      // Also of times before 1970.
      time - (time % length + length) % length
    }
    let newest = start(last)
    let oldest = max(start(first), newest - (Self.maxPeriodCount - 1) * length)
    self.periods = stride(from: oldest, through: newest, by: Int(length)).map {
      Period(beginsAt: $0)
    }
    var endings: [String: Ending] = [:]
    var retries: [String: RunRecord.Retry] = [:]
    var topics: [String: RunRecord.Topic] = [:]
    var sinks: [String: RunRecord.Sink] = [:]
    for item in items {
      let index = Int((item.beganAt - oldest) / length)
      self.count(item, inPeriod: item.beganAt < oldest ? nil : index)
      switch item {
      case .run(let record):
        let key = "\(record.exitCode) \(record.reason)"
        var ending =
          endings[key]
          ?? Ending(exitCode: record.exitCode, reason: record.reason, lastAt: record.endedAt)
        ending.count += 1
        (ending.lastAt, ending.lastMessage) = (record.endedAt, record.message)
        endings[key] = ending
        for retry in record.retries {
          retries["\(retry.place) \(retry.code)", default: retry.withoutCount].count += retry.count
        }
        for topic in record.topics { topics[topic.name, default: topic.withoutCounts].add(topic) }
        for sink in record.sinks { sinks[sink.name, default: sink.withoutCounts].add(sink) }
      case .unreported(let beginning):
        var ending =
          endings[""] ?? Ending(exitCode: -1, reason: "no report", lastAt: beginning.beganAt)
        ending.count += 1
        ending.lastAt = beginning.beganAt
        endings[""] = ending
      case .running, .verify: break
      }
    }
    self.endings = endings.values.sorted {
      ($1.count, $0.reason, $0.exitCode) < ($0.count, $1.reason, $1.exitCode)
    }
    self.retries = retries.values.sorted {
      ($1.count, $0.place, $0.code) < ($0.count, $1.place, $1.code)
    }
    self.topics = topics.values.sorted { ($1.events, $0.name) < ($0.events, $1.name) }
    self.sinks = sinks.values.sorted { $0.name < $1.name }
  }

  private mutating func count(_ item: RunHistory.Item, inPeriod index: Int?) {
    var period = index.map { self.periods[$0] } ?? Period(beginsAt: 0)
    switch item {
    case .run(let record):
      let counts = record.counts
      for (_, path) in RunRecord.Counts.members {
        self.total[keyPath: path] += counts[keyPath: path]
      }
      self.runCount += 1
      period.runs += 1
      if record.exitCode == 0 {
        self.lastSuccess = record
      } else if !record.isProgress {
        self.failureCount += 1
        period.failures += 1
      }
      period.retries += record.retryCount
      period.events += counts.events
      period.recordsRead += counts.recordsRead
      period.bytes += counts.bytes
      period.longestRun = max(period.longestRun ?? 0, record.duration)
      if let lag = record.lag { period.longestLag = max(period.longestLag ?? 0, lag) }
      if let left = record.allowance?.remaining {
        period.allowanceLeft = min(period.allowanceLeft ?? left, max(0, left))
      }
    case .unreported:
      self.runCount += 1
      self.failureCount += 1
      period.runs += 1
      period.failures += 1
    case .running: break
    case .verify(let record): self.lastVerdict = record
    }
    if let index { self.periods[index] = period }
  }
}

extension RunRecord.Retry {
  fileprivate var withoutCount: Self {
    var retry = self
    retry.count = 0
    return retry
  }
}

extension RunRecord.Topic {
  fileprivate var withoutCounts: Self {
    var topic = self
    (topic.events, topic.rows, topic.lag) = (0, 0, nil)
    return topic
  }

  fileprivate mutating func add(_ newer: Self) {
    self.events += newer.events
    self.rows += newer.rows
    if let lag = newer.lag { self.lag = max(self.lag ?? 0, lag) }
    self.completeThrough = newer.completeThrough ?? self.completeThrough
    self.end = newer.end ?? self.end
  }
}

extension RunRecord.Sink {
  fileprivate var withoutCounts: Self {
    var sink = self
    (sink.rows, sink.rowsRead, sink.bytes, sink.files) = (0, 0, 0, 0)
    return sink
  }

  fileprivate mutating func add(_ newer: Self) {
    (self.type, self.target) = (newer.type, newer.target)
    self.rows += newer.rows
    self.rowsRead += newer.rowsRead
    self.bytes += newer.bytes
    self.files += newer.files
  }
}
