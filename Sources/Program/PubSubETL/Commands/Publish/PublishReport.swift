import Clocks
import EventLoop
import JSON

/// The output of `publish`: results on standard output; refusals, progress and the summary on
/// standard error.
final class PublishReport: Sendable {
  private struct State {
    var shownRefusals = 0
    var nextProgress: ContinuousClock.Instant?
    var pace = ProgressPace()
  }

  private let secrets: SecretMask
  private let isDryRun: Bool
  private let inputName: String
  private let console = ErrorConsole()
  private let clock: ProcessClock
  private let start: ContinuousClock.Instant
  private let showsProgress: Bool
  private let state = Lock(State())

  /// The maximum number of refusals shown in addition to the results.
  private static let maxRefusals = 10

  init(secrets: SecretMask, isDryRun: Bool, inputName: String) {
    self.secrets = secrets
    self.isDryRun = isDryRun
    self.inputName = inputName
    self.clock = ProcessClock()
    self.start = self.clock.now
    self.showsProgress = ErrorConsole.canErase() && !StandardStream.output.isTerminal
  }

  /// - Returns: false if the results cannot be written.
  func write(_ lines: [PublishLine]) -> Bool {
    let results = lines.map { $0.json(hiding: self.secrets) }
    for (line, result) in zip(lines, results) {
      guard case .refused = line.outcome, let reason = result["error"]?.string else { continue }
      let number = self.state.withLock { state in
        state.shownRefusals += 1
        return state.shownRefusals
      }
      if number <= Self.maxRefusals {
        self.tell("\(self.inputName):\(line.number): \(reason)")
      } else if number == Self.maxRefusals + 1 {
        self.tell("more lines were refused; see the results on standard output")
      }
    }
    let texts = results.map { PrintableText(json: $0, .compact, hiding: self.secrets) }
    guard let first = texts.first else { return true }
    return (try? StandardStream.print(texts.dropFirst().reduce(first) { $0 + $1 })) != nil
  }

  /// Cheap enough to call for each batch.
  func show(_ summary: PublishSummary) {
    guard self.showsProgress else { return }
    let now = self.clock.now
    let rate = self.state.withLock { state -> Int64? in
      guard state.nextProgress.map({ now >= $0 }) ?? true else { return nil }
      state.nextProgress = now + ProgressDisplay.interval
      state.pace.note(
        events: Int64(self.isDryRun ? summary.valid : summary.published), newestCommit: nil,
        at: now - self.start)
      return state.pace.rate
    }
    guard let rate else { return }
    let line = "\(ProgressLine.grouped(rate))/s  \(summary.text(isDryRun: self.isDryRun))"
    self.console.showProgress(
      .unended(
        [ProgressLine.fitted(line, width: StandardStream.error.size.columns - 1)],
        hiding: self.secrets))
  }

  func finish(_ summary: PublishSummary, failure: RunFailure?, lastLine: Int) {
    self.console.showProgress(nil)
    if let failure { self.tell(failure.message) }
    // Cron mails any output, even of a successful run.
    let isQuiet =
      failure == nil && summary.exitCode == .success && !self.isDryRun
      && !StandardStream.error.isTerminal
    guard !isQuiet else { return }
    var text = summary.text(isDryRun: self.isDryRun)
    if failure != nil {
      text += lastLine == 0 ? "; nothing was read" : "; lines after \(lastLine) were not read"
      if failure?.exitCode == .output {
        text += "; results were written up to line \(summary.lastWritten)"
      }
    }
    self.tell(text)
    if summary.hasOtherForm {
      self.tell(
        "no line is a JSON object: the input is one object per line, which jq -c '.[]' makes of an array"
      )
    }
  }

  func tell(_ line: String) {
    self.console.write(PrintableText(line: line, hiding: self.secrets))
  }
}
