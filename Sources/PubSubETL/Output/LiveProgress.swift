internal import Bytes
import Pipeline

/// The progress line of a run on the terminal of standard error. Used by one thread at a time.
final class LiveProgress {
  private let console: ErrorConsole
  private let secrets: SecretMask
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var line = ProgressLine()

  /// Nil when standard error is no terminal that can erase a line: then nothing is shown.
  init?(console: ErrorConsole, secrets: SecretMask, environment: Environment = .process) {
    guard StandardStream.error.isTerminal, environment.variable("TERM") != "dumb" else {
      return nil
    }
    self.console = console
    self.secrets = secrets
    self.start = self.clock.now
  }

  /// Cheap enough to be called after each batch: most calls draw nothing.
  func update(_ snapshot: ProgressSnapshot) {
    let line = self.line.update(
      snapshot, at: self.clock.now - self.start, wallTime: UTCTime.now(),
      columns: StandardStream.error.columns ?? 80)
    if let line { self.console.showProgress(.unended(line, hiding: self.secrets)) }
  }

  /// Takes the line away.
  func finish() { self.console.showProgress(nil) }

  /// Writes a line that stays.
  func leave(_ line: String) {
    self.console.write(PrintableText(line: line, hiding: self.secrets))
  }
}
