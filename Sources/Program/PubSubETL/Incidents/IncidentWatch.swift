internal import Bytes
internal import Checkpoint
internal import Clocks
import EventLoop
import Logging
import Pipeline

/// Detects when incidents of a pipeline begin and end, prints both to standard error, and sends the
/// notifications of `notify`.
///
/// It belongs to a run that has the lock of the pipeline. No run fails because of it.
final class IncidentWatch: Sendable {
  private struct State {
    var book = IncidentBook()
    /// Nil if what is stored is not known.
    var stored: IncidentBook?
    /// What the run waits for.
    var waits: [RetryLedger.Wait] = []
    /// A stream was opened.
    var isConnected = false
    /// When a call may be tried again after one that failed.
    var nextCall: ContinuousClock.Instant?
  }

  /// As many killed runs in a row are an incident; one may be a restart of the machine.
  static let minKilledCount = 2
  /// The time between two looks of a run that follows.
  static let interval = Duration.seconds(15)
  /// The time between two attempts of a call by such a run.
  static let callInterval = Duration.seconds(300)

  private let configuration: PipelineConfiguration
  private let clock: ProcessClock
  private let logger: Logger
  /// What is written to standard error is a mail.
  private let isMailed: Bool
  private let file: IncidentFile
  private let state = Lock(State())

  /// - Parameter isMailed: repeats on standard error are left out.
  init(
    _ configuration: PipelineConfiguration, clock: ProcessClock, logger: Logger, isMailed: Bool
  ) {
    self.configuration = configuration
    self.clock = clock
    self.logger = logger
    self.isMailed = isMailed
    self.file = IncidentFile(paths: configuration.statePaths, secrets: configuration.secrets)
  }

  /// Reads what earlier runs have seen.
  ///
  /// This run may succeed, so only mails and calls tell of killed runs.
  ///
  /// - Parameter killed: the runs before this one that left no report, the newest first.
  /// - Returns: whether they are an incident.
  @discardableResult
  func begin(killed: [RunBeginning] = []) -> Bool {
    let book = self.file.load()
    if book == nil {
      self.logger.warning(
        "\(self.configuration.statePaths.incidents) is damaged; its incidents are lost"
      )
    }
    self.state.withLock { state in
      state.book = book ?? IncidentBook()
      state.stored = book
      for kind in Incident.Kind.allCases where !self.configuration.notify.watches(kind) {
        _ = state.book.sawOver(kind, at: self.clock.wallTime)
      }
    }
    guard killed.count >= Self.minKilledCount, let first = killed.last else { return false }
    self.saw(
      .failing,
      Incident.Finding(
        message:
          "the last \(killed.count) runs left no report: each was killed, or the machine went "
          + "down; look for limits of memory or time in the logs of the kernel and of the scheduler",
        reason: "killed"), level: self.isMailed ? .error : .info,
      began: (first.beganAt, killed.count))
    self.store()
    return true
  }

  /// Whether the failure of this pipeline was shown, so that a mail about an attempt says nothing new.
  var isSilent: Bool {
    self.isMailed
      && self.state.withLock { $0.book[.failing].map { $0.until == nil } ?? false }
  }

  // MARK: Runs that end

  /// Takes the end of a run into account, and prints its error if somebody should see it.
  func ended(_ report: RunReport, isStopped: Bool) {
    switch isStopped ? .unknown : report.standing {
    case .fails(let finding): self.saw(.failing, finding)
    case .works:
      self.sawOver(.failing)
      if let message = report.message, report.exitCode != .success {
        self.logger.log(level: self.isMailed ? .info : .error, "\(message)")
      }
    case .unknown:
      if let message = report.message, report.exitCode != .success {
        self.logger.error("\(message)")
      }
    }
    self.lookAtThresholds()
    // If the disk refuses writes, the error of the run says so.
    self.store(isTold: report.exitCode == .output)
  }

  /// Takes a pipeline file with mistakes into account.
  ///
  /// - Parameter show: prints them; not called if an earlier mail had them.
  func ended(with error: ConfigurationError, show: () -> Void) {
    let now = self.clock.wallTime
    let finding = self.clean(
      Incident.Finding(
        message: error.printable.text, reason: "pipeline_file", exitCode: error.exitCode.rawValue))
    let answer = self.state.withLock { $0.book.saw(.failing, finding, at: now) }
    // A run that is killed between the two prints them again.
    if !self.isMailed || answer != .beSilent { show() }
    self.store()
  }

  // MARK: Comparisons

  /// Takes into account what `verify` has stored.
  func compared() {
    self.lookAtThresholds()
    self.store()
  }

  // MARK: Runs that follow

  func waits(for waits: [RetryLedger.Wait]) { self.state.withLock { $0.waits = waits } }

  func connected() { self.state.withLock { $0.isConnected = true } }

  /// Runs alongside a run that follows until it is cancelled.
  func watch() async {
    while (try? await self.clock.sleep(for: Self.interval)) != nil {
      self.look()
      await self.deliver()
    }
  }

  /// What would end another run is an incident of one that follows.
  func look() {
    let now = self.clock.wallTime
    let patience = Int64(self.configuration.retry.giveUpAfter / .milliseconds(1))
    let (waits, isConnected) = self.state.withLock { ($0.waits, $0.isConnected) }
    if let wait = waits.first(where: { $0.isRefusal || now - $0.since >= patience }) {
      let code: ExitCode = wait.isRefusal ? .refused : .unavailable
      self.saw(
        .failing,
        Incident.Finding(
          message: wait.message, reason: wait.code ?? EndReason.unavailable.rawValue,
          exitCode: code.rawValue), isEvent: false)
    } else if waits.isEmpty, isConnected {
      self.sawOver(.failing)
    }
    self.lookAtThresholds()
    self.store()
  }

  // MARK: Standard error

  /// - Parameters:
  ///   - isEvent: false for something that was seen to be as before.
  ///   - level: nil for that of the kind.
  ///   - began: when and how often it was there before, if it is new.
  private func saw(
    _ kind: Incident.Kind, _ finding: Incident.Finding, isEvent: Bool = true,
    level: Logger.Level? = nil, began: (at: Int64, count: Int)? = nil
  ) {
    let now = self.clock.wallTime
    let finding = self.clean(finding)
    let answer = self.state.withLock {
      $0.book.saw(kind, finding, at: now, counts: isEvent, began: began)
    }
    let level = level ?? (kind == .failing ? .error : .warning)
    switch answer {
    case .show: self.logger.log(level: level, "\(finding.message)")
    case .remind(let since, let count):
      let lasted = ProgressLine.age(milliseconds: max(0, now - since))
      let runs = count > 1 ? " (\(Phrase.count(count, "run")))" : ""
      self.logger.log(
        level: level, "\(finding.message); this has lasted for \(lasted)\(runs)")
    case .beSilent:
      self.logger.log(
        level: self.isMailed || !isEvent || kind != .failing ? .info : level, "\(finding.message)")
    }
  }

  /// One line without secrets and control characters, as it is stored and sent.
  private func clean(_ finding: Incident.Finding) -> Incident.Finding {
    var finding = finding
    let message = finding.message.split(separator: "\n").joined(separator: "; ")
    finding.message = String(
      PrintableText(line: message, hiding: self.configuration.secrets).text.dropLast())
    return finding
  }

  private func sawOver(_ kind: Incident.Kind) {
    let now = self.clock.wallTime
    guard let incident = self.state.withLock({ $0.book.sawOver(kind, at: now) }) else { return }
    let lasted = ProgressLine.age(milliseconds: incident.duration(at: now))
    var logger = self.logger
    // Whoever got a mail about the beginning gets one about the end.
    if self.isMailed { logger.logLevel = min(.notice, logger.logLevel) }
    logger.notice("the pipeline \(kind.ending) after \(lasted)")
  }

  // MARK: Thresholds

  private func lookAtThresholds() {
    let now = self.clock.wallTime
    for (kind, reading) in IncidentThresholds(self.configuration).read(at: now) {
      switch reading {
      case .within: self.sawOver(kind)
      case .beyond(let finding): self.saw(kind, finding, isEvent: false)
      }
    }
  }

  // MARK: Calls

  /// Makes the calls that are due, within `Notifier.timeLimit`. One that fails is tried again by the next run.
  func deliver() async {
    guard self.configuration.notify.calls else { return }
    let notifier = Notifier(
      configuration: self.configuration.notify, secrets: self.configuration.secrets,
      clock: self.clock)
    let deadline = self.clock.now + Notifier.timeLimit
    while let event = self.state.withLock({ $0.book.due }) {
      let (now, left) = (self.clock.now, deadline - self.clock.now)
      let isEarly = self.state.withLock { state in state.nextCall.map { now < $0 } ?? false }
      guard left > .zero, !isEarly else { return }
      let incident = self.state.withLock { $0.book.calls(event) }
      self.store()
      let notice = Notice(
        event: event, incident: incident, pipeline: self.configuration.name,
        file: self.configuration.file, host: HostName.current, time: self.clock.wallTime)
      do throws(Notifier.Failure) {
        try await notifier.call(notice, within: left)
      } catch {
        self.state.withLock { $0.nextCall = self.clock.now + Self.callInterval }
        self.logger.log(
          level: incident.attempts == 1 ? .warning : .info,
          """
          the call of notify about '\(event.kind.rawValue)' (\(event.word)) failed, and will be repeated: \
          \(error)
          """)
        return
      }
      self.state.withLock { $0.book.called(event) }
      self.store()
    }
  }

  /// - Parameter isTold: an error that was shown explains why nothing can be stored.
  private func store(isTold: Bool = false) {
    let (book, isStored) = self.state.withLock { state in
      if !self.configuration.notify.calls { state.book.forgetEnded() }
      return (state.book, state.book == state.stored)
    }
    guard !isStored else { return }
    do {
      try self.file.store(book)
      self.state.withLock { $0.stored = book }
    } catch {
      self.logger.log(
        level: isTold ? .info : .warning,
        """
        the open incidents could not be stored, so the next run repeats their messages; make room, or give the \
        user of the run the right to write: \(error)
        """)
    }
  }
}

extension NotifyConfiguration {
  /// Whether something can be an incident.
  func watches(_ kind: Incident.Kind) -> Bool {
    switch kind {
    case .failing: true
    case .lag: self.lag != nil
    case .positionAge: self.positionAge != nil
    case .deadLetters: self.deadLetters != nil
    case .drift: self.drift
    }
  }
}
