internal import Bytes
internal import Checkpoint
internal import DurableFiles
import Pipeline

/// How a pipeline stands, from its state directory, manifests and databases, for `pubsub-etl status`.
struct PipelineStatus {
  struct Topic {
    var name: String
    /// In the checkpoint only; the pipeline file does not have it.
    var isUnused = false
    /// nil when none is stored.
    var position: TopicPosition?
    /// Newest commit time in a finished file.
    var lastCommitTimestamp: String?
  }

  /// Why a monitor should wake somebody.
  struct Problem: Equatable {
    var exitCode: Int32
    /// One stable word.
    var kind: String
    /// What, on which thing, what to do.
    var message: String
    /// SQL in the message, joined by `; `.
    var statements: [String] = []

    init(_ exitCode: ExitCode, _ kind: String, _ message: String, statements: [String] = []) {
      self.init(exitCode: exitCode.rawValue, kind: kind, message: message)
      self.statements = statements
    }

    init(exitCode: Int32, kind: String, message: String) {
      self.exitCode = exitCode
      self.kind = kind
      self.message = message
    }
  }

  var pipeline: String
  var file: String
  var restoreCommand: String
  var stateDirectory: String
  /// Milliseconds since 1970.
  var now: Int64
  var lock: RunLockState
  var org: String?
  /// When the checkpoint was stored, in milliseconds since 1970; nil without one.
  var savedAt: Int64?
  var topics: [Topic] = []
  var sinks: [SinkStatus] = []
  var deadLetters: DeadLetterStatus
  var lastRun: LastRun?
  /// Open incidents, with the state of their notifications.
  var incidents: [Incident] = []
  /// What the run in progress waits for.
  var waiting: [RetryLedger.Wait] = []
  /// In the order of their weight.
  var problems: [Problem] = []

  /// Nil unless the last run was ended by a limit, and how far it came is known.
  var catchingUp: CatchingUp? { self.lastRun.flatMap { CatchingUp($0, now: self.now) } }

  /// 0 or that of the first problem.
  var exitCode: Int32 { self.problems.first?.exitCode ?? 0 }

  /// For how long the service keeps events, in milliseconds (TheService.md#retention).
  static let retention: Int64 = 72 * 3_600_000
  /// A position that nothing has confirmed for so long is in danger.
  static let dangerAge: Int64 = 48 * 3_600_000
  /// For how long a run is taken as a sign that old positions will be replaced, in milliseconds.
  static let advanceAge: Int64 = 3_600_000
}

extension PipelineStatus {
  /// What the parts say together.
  ///
  /// - Parameters:
  ///   - maxAge: how old the last commit may be.
  ///   - journalAt: when positions were last changed by hand, which also takes the lock.
  mutating func judge(maxAge: Duration?, journalAt: Int64?) {
    let isRunning = self.lock.isHeld == true
    self.judgeSinks()
    for wait in self.waiting where wait.isRefusal {
      self.add(.refused, "topic_refused", wait.message)
    }
    // The last run that ended says nothing about the one in progress.
    if isRunning, !self.waiting.isEmpty,
      let failing = self.incidents.first(where: { $0.kind == .failing && $0.until == nil })
    {
      let code = failing.finding.exitCode ?? ExitCode.tryAgain.rawValue
      // A refusal is above already.
      if !self.problems.contains(where: { $0.kind == "topic_refused" && $0.exitCode == code }) {
        self.problems.append(
          Problem(exitCode: code, kind: "failing", message: failing.finding.message))
      }
    }
    if let savedAt = self.savedAt {
      self.judgeRun(isRunning: isRunning, journalAt: journalAt)
      self.judgePositions()
      if let maxAge, .milliseconds(self.now - savedAt) > maxAge {
        self.add(
          .tryAgain, "old",
          "the last commit was \(ProgressLine.age(milliseconds: self.now - savedAt)) ago; "
            + "check that the pipeline is still scheduled")
      }
    } else if self.sinks.contains(where: { !$0.isRemoved && $0.ownPosition == nil }),
      let own = self.sinks.lazy.compactMap(\.ownPosition).first(where: { $0.stored != nil })
    {
      self.add(
        .data, "lost_state",
        "there is no checkpoint in \(self.stateDirectory), but \(own.place) holds positions of "
          + "this pipeline; put the checkpoint back, run "
          + "'\(self.restoreCommand)', or begin a new epoch with 'run --accept-reset'")
    } else if self.sinks.contains(where: \.hasOutput) {
      self.add(
        .data, "lost_state",
        "there is no checkpoint in \(self.stateDirectory), but files were exported; put the "
          + "checkpoint back, run '\(self.restoreCommand)', "
          + "or begin a new epoch with 'run --accept-reset'")
    } else if isRunning {
      // The first run has not committed yet.
    } else {
      self.judgeRun(isRunning: false, journalAt: journalAt)
      // A store that does not answer may know better.
      guard !self.sinks.contains(where: { $0.ownPosition?.isUnknown == true }) else { return }
      self.add(.tryAgain, "never_run", "nothing has been committed in \(self.stateDirectory) yet")
    }
  }

  private mutating func judgeRun(isRunning: Bool, journalAt: Int64?) {
    guard !isRunning else { return }
    if let run = self.lock.run, run.takenAt > (self.lastRun?.finishedAtMilliseconds ?? 0),
      run.processID != self.lastRun?.processID, run.takenAt > (journalAt ?? 0)
    {
      self.add(
        .tryAgain, "killed",
        "the run started at \(UTCTime.timestamp(milliseconds: run.takenAt)) ended without "
          + "recording a result: it was killed, the machine went down, or its disk was full; the next "
          + "run resumes where it stopped")
    } else if let lastRun, lastRun.exitCode != 0, !self.isProgressing(lastRun) {
      let message = lastRun.message.map { ": \($0)" } ?? ""
      self.problems.append(
        Problem(
          exitCode: lastRun.exitCode, kind: "last_run_failed",
          message: "the last run ended with exit code \(lastRun.exitCode) "
            + "(\(lastRun.reason))\(message)"
            + (self.catchingUp.map { "; \($0.text)" } ?? "")))
    }
  }

  /// Whether the next runs will reach the end of the stream, as far as is known.
  private func isProgressing(_ run: LastRun) -> Bool {
    guard run.isProgress else { return false }
    guard let catchingUp = self.catchingUp else { return true }
    return catchingUp.left != nil
  }

  /// Positions that sinks keep come before output: without them no run can continue.
  private mutating func judgeSinks() {
    let isCommitted = self.savedAt != nil
    let keepers = self.sinks.filter { $0.ownPosition != nil }
    let others = self.sinks.filter { $0.ownPosition == nil }
    for sink in keepers + others {
      if isCommitted, let own = sink.ownPosition, own.stored == nil, !own.isUnknown {
        self.problems += [own.problemIfLost].compactMap { $0 }
      }
      self.problems += sink.problems
    }
    self.problems += self.deadLetters.problems
  }

  private mutating func judgePositions() {
    for topic in self.topics where !topic.isUnused {
      guard let confirmed = topic.position?.confirmedAt else { continue }
      let age = self.now - confirmed
      guard age > Self.dangerAge else { continue }
      if self.isAdvancing(topic.name), age < Self.retention { continue }
      let hours = Self.retention / 3_600_000
      self.add(
        .data, age < Self.retention ? "ageing_out" : "aged_out",
        "\(topic.name): the position was last confirmed \(ProgressLine.age(milliseconds: age)) "
          + "ago; "
          + (age < Self.retention
            ? "after \(hours) h the service may have forgotten it; run the pipeline"
            : "the service keeps events for \(hours) h, so some may be missing"))
    }
  }

  /// Whether a topic whose position is old is being read: by a run that began a short time ago, or by one that
  /// ended then and leaves the rest to the next. A follower that gets nothing for hours reads nothing.
  private func isAdvancing(_ topic: String) -> Bool {
    if self.lock.isHeld == true {
      return self.lock.run.map { self.now - $0.takenAt < Self.advanceAge } ?? false
    }
    guard let lastRun, self.now - lastRun.finishedAtMilliseconds < Self.advanceAge else {
      return false
    }
    return self.isProgressing(lastRun) && lastRun.topicsWithEvents.contains(topic)
  }

  mutating func add(_ exitCode: ExitCode, _ kind: String, _ message: String) {
    self.problems.append(Problem(exitCode, kind, message))
  }
}
