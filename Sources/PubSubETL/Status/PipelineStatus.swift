internal import Bytes
internal import Checkpoint
internal import DurableFiles
import FileSink
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

  struct Sink {
    var name: String
    /// Absolute.
    var directory: String
    /// The checkpoint does not know it yet.
    var isNew = false
    /// When the pipeline file lost it, in milliseconds since 1970; nil for one that is in use.
    var removedAt: Int64?
    /// Where a removed sink stopped; that of the topics for one that is in use.
    var positions: [String: TopicPosition] = [:]
    var files: Int64 = 0
    var events: Int64 = 0
    /// Compressed.
    var bytes: Int64 = 0
    /// Files in progress.
    var openFiles = 0
    /// How the newest finished files are; not of removed sinks.
    var output = OutputState()
    /// How all are, if that was asked for.
    var verification: OutputVerification?
  }

  struct DeadLetters {
    var directory: String
    var files: Int64 = 0
    var events: Int64 = 0
    var openFiles = 0
    /// How all finished files are, if that was asked for.
    var verification: OutputVerification?
  }

  /// Why a monitor should wake somebody.
  struct Problem: Equatable {
    var exitCode: Int32
    /// One stable word.
    var kind: String
    /// What, on which thing, what to do.
    var message: String
  }

  var pipeline: String
  var file: String
  var stateDirectory: String
  /// Milliseconds since 1970.
  var now: Int64
  var lock: RunLockState
  var org: String?
  /// When the checkpoint was stored, in milliseconds since 1970; nil without one.
  var savedAt: Int64?
  var topics: [Topic] = []
  var sinks: [Sink] = []
  var databases: [Database] = []
  var deadLetters: DeadLetters
  var lastRun: LastRun?
  /// In the order of their weight.
  var problems: [Problem] = []

  /// 0 or that of the first problem.
  var exitCode: Int32 { self.problems.first?.exitCode ?? 0 }

  /// For how long the service keeps events, in milliseconds (contract/semantics.md section 5).
  static let retention: Int64 = 72 * 3_600_000
  /// A position that nothing has confirmed for so long is in danger.
  static let dangerAge: Int64 = 48 * 3_600_000
}

extension PipelineStatus {
  /// What the parts say together.
  ///
  /// - Parameters:
  ///   - maxAge: how old the last commit may be.
  ///   - journalAt: when positions were last changed by hand, which also takes the lock.
  mutating func judge(maxAge: Duration?, journalAt: Int64?) {
    let isRunning = self.lock.isHeld == true
    self.judgeDatabases()
    self.judgeOutput()
    if let savedAt = self.savedAt {
      self.judgeRun(isRunning: isRunning, journalAt: journalAt)
      self.judgePositions()
      if let maxAge, .milliseconds(self.now - savedAt) > maxAge {
        self.add(
          .tryAgain, "old",
          "the last commit was \(ProgressLine.age(milliseconds: self.now - savedAt)) ago: is the "
            + "pipeline still started?")
      }
    } else if self.sinks.contains(where: { $0.removedAt == nil }),
      let database = self.databases.first(where: { $0.state != nil })
    {
      self.add(
        .data, "lost_state",
        "there is no checkpoint in \(self.stateDirectory), but the database of sink "
          + "'\(database.name)' has positions of this pipeline: put the checkpoint back, run "
          + "'pubsub-etl checkpoint restore \(self.file) --from-manifest', or begin a new epoch "
          + "with 'run --accept-reset'")
    } else if self.sinks.contains(where: { $0.files > 0 }) {
      self.add(
        .data, "lost_state",
        "there is no checkpoint in \(self.stateDirectory), but files were exported: put the "
          + "checkpoint back, run 'pubsub-etl checkpoint restore \(self.file) --from-manifest', or "
          + "begin a new epoch with 'run --accept-reset'")
    } else if isRunning {
      // The first run has not committed yet.
    } else {
      self.judgeRun(isRunning: false, journalAt: journalAt)
      // A database that does not answer may know better.
      guard !self.databases.contains(where: { $0.failure != nil }) else { return }
      self.add(.tryAgain, "never_run", "nothing was ever committed in \(self.stateDirectory)")
    }
  }

  private mutating func judgeRun(isRunning: Bool, journalAt: Int64?) {
    guard !isRunning else { return }
    if let takenAt = self.lock.takenAt, takenAt > (self.lastRun?.finishedAtMilliseconds ?? 0),
      self.lock.processID != self.lastRun?.processID, takenAt > (journalAt ?? 0)
    {
      self.add(
        .tryAgain, "killed",
        "the run that began at \(UTCTime.timestamp(milliseconds: takenAt)) ended without recording a result: "
          + "it was killed, or the machine went down; the next run goes on")
    } else if let lastRun, lastRun.exitCode != 0 {
      let message = lastRun.message.map { ": \($0)" } ?? ""
      self.problems.append(
        Problem(
          exitCode: lastRun.exitCode, kind: "last_run_failed",
          message: "the last run ended with \(lastRun.exitCode) (\(lastRun.reason))\(message)"))
    }
  }

  private mutating func judgeOutput() {
    for sink in self.sinks {
      for fault in sink.output.faults {
        self.add(.data, "lost_output", "sink '\(sink.name)': \(fault): \(OutputState.remedy)")
      }
      self.judge(sink.verification, of: "sink '\(sink.name)'")
    }
    self.judge(self.deadLetters.verification, of: "dead letters")
  }

  private mutating func judge(_ verification: OutputVerification?, of thing: String) {
    guard let verification, !verification.faults.isEmpty else { return }
    self.add(
      .data, "lost_output",
      "\(thing): of all finished files \(verification.missingCount) are missing, "
        + "\(verification.changedCount) changed: \(verification.faults.joined(separator: "; "))")
  }

  private mutating func judgePositions() {
    for topic in self.topics where !topic.isUnused {
      guard let confirmed = topic.position?.confirmedAt else { continue }
      let age = self.now - confirmed
      guard age > Self.dangerAge else { continue }
      let hours = Self.retention / 3_600_000
      self.add(
        .data, age < Self.retention ? "ageing_out" : "aged_out",
        "\(topic.name): the position was confirmed \(ProgressLine.age(milliseconds: age)) ago; "
          + (age < Self.retention
            ? "after \(hours) h the service may not know it any more: run the pipeline"
            : "the service keeps events for \(hours) h, so some may be missing"))
    }
  }

  mutating func add(_ exitCode: ExitCode, _ kind: String, _ message: String) {
    self.problems.append(Problem(exitCode: exitCode.rawValue, kind: kind, message: message))
  }
}
