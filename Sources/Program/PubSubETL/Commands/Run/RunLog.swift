internal import Bytes
internal import Clocks
internal import EventLoop
import Logging
import Pipeline
import SalesforceAuth

/// The output of a run in progress: log lines with stable keys, the live lines of a terminal, and
/// the line that remains there. Used by one thread at a time.
final class RunLog {
  /// The time between two lines about commits.
  private static let summaryInterval = Duration.seconds(60)
  /// The maximum number of undecodable records that get a line each.
  private static let shownUnreadable = 20

  private let logger: Logger
  private let progress: LiveProgress?
  private let follows: Bool
  private let endpoint: String
  private let clock: ProcessClock
  private var notices = RetryNotices()
  /// The retries so far.
  private(set) var retries = RetryLedger()
  /// Receives what the run waits for, whenever that changes.
  var onWaiting: (([RetryLedger.Wait]) -> Void)?
  /// Whoever reads the log knows already that the pipeline fails, so attempts are no news.
  var isSilent = false
  private var snapshot = ProgressSnapshot()
  private var nextAttempt: ContinuousClock.Instant?
  /// When records began to arrive, and how many there were.
  private var readsBegan: (ContinuousClock.Instant, Int)?
  /// When reading records will begin.
  private var readsAt: ContinuousClock.Instant?
  private var unreadableCount = 0
  private var isConnected = false
  /// Where topics are about to be read from, until reading begins.
  private var starts: [String: (start: StartPoint, epoch: Int)] = [:]
  /// Nil before the first line.
  private var summarizedAt: ContinuousClock.Instant?
  /// The streams have been opened, and the snapshot shows what they have brought.
  private var hasProgress = false
  private var summarized = RunStatistics(topics: [])

  /// - Parameter progress: nil if standard error is not a terminal.
  init(
    logger: Logger, progress: LiveProgress?, follows: Bool, endpoint: String, clock: ProcessClock
  ) {
    self.logger = logger
    self.progress = progress
    self.follows = follows
    self.endpoint = endpoint
    self.clock = clock
  }

  // MARK: Login and connection

  func loggingIn(at host: String) { self.show(activity: "logging in at \(host)") }

  /// Waits until the next attempt.
  func loginFailed(_ error: AuthError, delay: Duration) async throws {
    self.failed(.login, error.message, code: nil, delay: delay)
    let until = self.clock.now + delay
    while case let left = until - self.clock.now, left > .zero {
      try await self.clock.sleep(for: min(left, .seconds(1)))
      self.draw()
    }
  }

  func loggedIn(_ token: AccessToken) {
    self.worked(.login)
    self.logger.info(
      "logged in",
      metadata: ["org": "\(token.organizationID)", "instance": "\(token.instanceURL)"])
    self.show(activity: "connecting to \(self.endpoint)")
  }

  /// Logs that the schemas needed to check the columns could not be fetched.
  func schemasFailed(_ message: String, delay: Duration) {
    self.failed(.schemas, message, code: nil, delay: delay)
  }

  func schemasFetched() { self.worked(.schemas) }

  // MARK: Streams

  func note(_ note: RunNote) {
    switch note {
    case .subscribing(let topic, let start, let epoch): self.starts[topic] = (start, epoch)
    case .opened(let topic): self.opened(topic)
    case .worked(let topic), .schemasFetched(let topic):
      self.worked(.topic(topic), metadata: ["topic": "\(topic)"])
    case .refused(let topic, let failure, let delay): self.refused(topic, failure, delay)
    case .heldBack(let topic):
      self.logger.info(
        "closed the stream while waiting for a sink; resuming",
        metadata: ["topic": "\(topic)"])
    case .caughtUp(let topic, let rule):
      self.logger.info("caught up", metadata: ["topic": "\(topic)", "rule": "\(rule)"])
    case .awaitsPosition(let topic, let isFirst, let until):
      let wait = Phrase.duration(.seconds((until - self.clock.now).components.seconds))
      self.logger.info(
        isFirst
          ? "waiting up to \(wait) for a first position"
          : "waiting up to \(wait) for a keepalive that confirms the position",
        metadata: ["topic": "\(topic)"])
    case .waitsToRead(let entity, let until):
      self.readsAt = max(self.readsAt ?? until, until)
      let wait = Phrase.duration(
        .seconds((until - self.clock.now + .milliseconds(500)).components.seconds))
      self.logger.info("records will be read in \(wait)", metadata: ["entity": "\(entity)"])
    case .reading(let pass):
      self.logger.info(
        "reading records",
        metadata: [
          "entity": "\(pass.entity)", "pass": .number(pass.number), "job": "\(pass.job ?? "")",
          "records_before": .number(pass.rowCount),
        ])
    case .readAll(let pass):
      let what = pass.isRefresh ? "refresh of fields" : "snapshot"
      self.logger.notice(
        "\(what) of \(pass.entity) complete: \(Phrase.count(pass.rowCount, "record"))")
    case .notRepaired(let entity, let reason):
      self.logger.warning("could not re-read the incorrect records of \(entity): \(reason)")
    case .unreadable(let entity, let recordID, let reason):
      self.unreadableCount += 1
      // The report counts all of them, and databases list them.
      self.logger.log(
        level: self.unreadableCount <= Self.shownUnreadable ? .warning : .debug,
        "\(entity) \(recordID ?? "without ID") was read and cannot be exported: \(reason)")
    case .stopping(let outcome):
      self.logger.info("stopping", metadata: ["reason": "\(outcome.word)"])
    }
  }

  private func opened(_ topic: String) {
    if !self.isConnected {
      self.isConnected = true
      self.logger.info("connected", metadata: ["endpoint": "\(self.endpoint)"])
    }
    self.snapshot.activity = nil
    self.forgetFailure()
    guard let (start, epoch) = self.starts.removeValue(forKey: topic) else { return }
    self.logger.info(
      "subscribed",
      metadata: ["topic": "\(topic)", "from": "\(start.words)", "epoch": .number(epoch)])
  }

  func retrying(topic: String, _ failure: SourceFailure, delay: Duration) {
    let metadata: Logger.Metadata = ["topic": "\(topic)", "code": "\(failure.reason)"]
    guard delay > .zero else {
      // Streams end from time to time and are reopened at once. An unusable position is also in the
      // report.
      let isHole = failure.disposition == .invalidReplay
      let level: Logger.Level = !isHole ? .info : self.follows ? .warning : .notice
      self.logger.log(
        level: level, "\(failure.description); reopening the stream", metadata: metadata)
      return
    }
    self.failed(
      .topic(topic), failure.description, code: failure.reason, delay: delay, metadata: metadata)
  }

  func waiting(topic: String, _ what: String) {
    self.logger.notice("\(what)", metadata: ["topic": "\(topic)"])
    self.draw()
  }

  /// A failure that waiting alone does not fix is reported at once.
  private func refused(_ topic: String, _ failure: SourceFailure, _ delay: Duration?) {
    let metadata: Logger.Metadata = ["topic": "\(topic)", "code": "\(failure.reason)"]
    guard let delay else {
      self.logger.warning(
        "\(failure.description); the other topics are exported first", metadata: metadata)
      return
    }
    self.failed(
      .topic(topic), failure.description, code: failure.reason, delay: delay, metadata: metadata,
      isRefusal: true)
  }

  func retrying(sink: String, _ message: String, code: String?, delay: Duration) {
    self.failed(
      .sink(sink), "sink '\(sink)': \(message)", code: code, delay: delay,
      metadata: ["sink": "\(sink)"])
    self.draw()
  }

  func recovered(sink: String) {
    self.worked(.sink(sink), metadata: ["sink": "\(sink)"])
  }

  private func failed(
    _ place: RetryNotices.Place, _ message: String, code: String?, delay: Duration,
    metadata: Logger.Metadata = [:], isRefusal: Bool = false
  ) {
    let (attempts, isShown) = self.notices.failed(place, message, isRefusal: isRefusal)
    self.retries.failed(
      place, code: code, message, isRefusal: isRefusal, delay: delay, at: self.clock.wallTime)
    self.onWaiting?(self.retries.waiting)
    var metadata = metadata
    metadata["attempt"] = "\(attempts)"
    if let code { metadata["code"] = "\(code)" }
    // If the live line shows the failure, log lines would only push that line up.
    let isNews = isShown && self.progress == nil && !self.isSilent
    let level: Logger.Level = isNews ? .warning : .info
    self.logger.log(
      level: level, "\(message); retrying in \(Phrase.duration(delay))", metadata: metadata)
    self.snapshot.failure = ProgressSnapshot.Failure(message: message, attempts: attempts)
    self.nextAttempt = self.clock.now + delay
    self.draw()
  }

  private func worked(_ place: RetryNotices.Place, metadata: Logger.Metadata = [:]) {
    self.forgetFailure()
    if self.retries.worked(place) { self.onWaiting?(self.retries.waiting) }
    guard let failures = self.notices.worked(place) else { return }
    self.logger.info(
      "recovered after \(Phrase.count(failures, "failed attempt"))", metadata: metadata)
  }

  /// Removes the failure from the live line.
  private func forgetFailure() {
    self.snapshot.failure = nil
    self.nextAttempt = nil
  }

  // MARK: Files and commits

  func info(_ message: String, metadata: Logger.Metadata) {
    self.logger.info("\(message)", metadata: metadata)
  }

  /// Called after each response; does almost nothing unless there is output.
  func progressed(_ statistics: RunStatistics, sinks: OpenSinks) {
    self.draw(after: { self.take(statistics, sinks: sinks) })
    guard self.logger.logLevel <= .info else { return }
    let now = self.clock.now
    let isDue =
      self.summarizedAt.map { now - $0 >= Self.summaryInterval }
      ?? (statistics.exported > 0 || statistics.reads.rows > 0)
    guard isDue else { return }
    self.summarizedAt = now
    self.summarize(statistics)
  }

  private func take(_ statistics: RunStatistics, sinks: OpenSinks) {
    self.hasProgress = true
    self.snapshot.topics = statistics.topics.map { topic in
      ProgressSnapshot.Topic(
        name: topic.name, events: Int64(topic.committed.events),
        newestCommit: topic.committed.newestCommit, state: ProgressSnapshot.State(topic))
    }
    self.snapshot.sinks = sinks.reportEntries
    self.snapshot.records = self.records(statistics.reads)
    self.snapshot.recordsRead = statistics.reads.rows + statistics.reads.repaired
  }

  private func records(_ reads: RunStatistics.Reads) -> ProgressSnapshot.Records? {
    let passes = reads.passes.values
    guard passes.contains(where: { $0.state != .complete }) else {
      guard let left = self.readsAt.map({ $0 - self.clock.now }), left > .zero else { return nil }
      return ProgressSnapshot.Records(count: 0, startIn: .seconds(left.components.seconds + 1))
    }
    var records = ProgressSnapshot.Records(count: passes.reduce(0) { $0 + $1.rowCount })
    let totals = passes.compactMap { $0.state == .complete ? $0.rowCount : $0.total }
    guard totals.count == passes.count else { return records }
    let total = totals.reduce(0, +)
    records.total = total
    let began = self.readsBegan ?? (self.clock.now, reads.rows)
    self.readsBegan = began
    let elapsed = self.clock.now - began.0
    let count = reads.rows - began.1
    if count > 0, elapsed >= .seconds(2) {
      let left = elapsed * (Double(max(0, total - records.count)) / Double(count))
      records.timeLeft = .seconds(left.components.seconds)
    }
    return records
  }

  private func summarize(_ statistics: RunStatistics) {
    defer { self.summarized = statistics }
    if statistics.commits > self.summarized.commits, statistics.exported > self.summarized.exported
    {
      var metadata: Logger.Metadata = [
        "events": .number(statistics.exported - self.summarized.exported),
        "commits": .number(statistics.commits - self.summarized.commits),
        "events_total": .number(statistics.exported), "rows_total": .number(statistics.rows),
      ]
      if let newest = statistics.newestCommit {
        metadata["newest_change"] = "\(UTCTime.timestamp(milliseconds: newest))"
      }
      self.logger.info("committed", metadata: metadata)
    }
    let (reads, readsBefore) = (statistics.reads, self.summarized.reads)
    if reads.rows > readsBefore.rows {
      var metadata: Logger.Metadata = [
        "records": .number(reads.rows - readsBefore.rows), "records_total": .number(reads.rows),
      ]
      if let records = self.records(reads) {
        if let total = records.total { metadata["expected"] = .number(total) }
        if let left = records.timeLeft { metadata["time_left"] = "\(Phrase.duration(left))" }
      }
      self.logger.info("records read", metadata: metadata)
    }
    if reads.repaired > readsBefore.repaired || reads.unseen > readsBefore.unseen {
      self.logger.info(
        "records read again",
        metadata: [
          "records": .number(reads.repaired - readsBefore.repaired),
          "not_found": .number(reads.unseen - readsBefore.unseen),
          "records_total": .number(reads.repaired),
        ])
    }
    for (index, topic) in statistics.topics.enumerated() {
      let before = index < self.summarized.topics.count ? self.summarized.topics[index] : nil
      self.logger.debug(
        "received",
        metadata: [
          "topic": "\(topic.name)",
          "responses": .number(topic.responses - (before?.responses ?? 0)),
          "events": .number(topic.delivered - (before?.delivered ?? 0)),
          "responses_total": .number(topic.responses),
          "pending_credit": .number(topic.pendingCredit),
          "retries_total": .number(topic.retries),
        ])
    }
  }

  // MARK: End

  /// - Parameter sinks: the sinks of a run that has reached its streams.
  func ended(_ statistics: RunStatistics, sinks: OpenSinks) {
    self.take(statistics, sinks: sinks)
    if self.logger.logLevel <= .info { self.summarize(statistics) }
  }

  /// Replaces the live line with the summary of a successful run, or removes it.
  func finish(_ report: RunReport) {
    self.progress?.finish()
    let untold = self.unreadableCount - Self.shownUnreadable
    if untold > 0 {
      self.logger.warning(
        "\(Phrase.count(untold, "more record")) cannot be exported; 'status' shows what to do")
    }
    // A run that was stopped has done as much as one that found the end.
    guard report.exitCode == .success || report.reason == EndReason.signal.rawValue else { return }
    self.logger.info(
      "finished",
      metadata: [
        "reason": "\(report.reason)", "events": .number(self.snapshot.events),
        "files": .number(self.snapshot.sinks.reduce(0) { $0 + $1.files }),
      ])
    guard report.reason != EndReason.alreadyRunning.rawValue,
      self.hasProgress || report.exitCode == .success
    else { return }
    self.progress?.leave(
      ProgressLine.summary(
        self.snapshot, rows: report.rowsByPlace,
        duration: .milliseconds(report.finishedAt - report.startedAt), now: report.finishedAt))
  }

  // MARK: Live line

  private func show(activity: String) {
    self.snapshot.activity = activity
    self.draw()
  }

  /// - Parameter refresh: brings the snapshot up to date; called only before it is shown.
  private func draw(after refresh: () -> Void = {}) {
    self.progress?.update {
      refresh()
      if let next = self.nextAttempt {
        self.snapshot.failure?.delay = max(.zero, next - self.clock.now)
      }
      return self.snapshot
    }
  }
}

extension ProgressSnapshot.State {
  /// A shorter silence is not worth mentioning.
  private static let shortestSilence = Duration.seconds(2)

  fileprivate init(_ topic: RunStatistics.Topic) {
    if topic.refusal != nil {
      self = .refused
    } else if topic.awaitsPosition {
      self = .awaitingKeepalive
    } else if topic.isCaughtUp {
      self = .caughtUp
    } else if let silence = topic.silence, silence.elapsed >= Self.shortestSilence {
      self = .silent(silence.elapsed, needed: silence.needed)
    } else {
      self = .reading
    }
  }
}

extension StartPoint {
  var words: String {
    switch self {
    case .earliest: "earliest"
    case .latest: "latest"
    case .managed: "the managed subscription's position"
    case .after(let id): "after \(id)"
    }
  }
}
