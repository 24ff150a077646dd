internal import Bytes
internal import Clocks
import Pipeline

/// The progress of a run on the terminal of standard error. Used by one thread at a time.
final class LiveProgress {
  private let console: ErrorConsole
  private let secrets: SecretMask
  private let clock: ProcessClock
  private let start: ContinuousClock.Instant
  private var display = ProgressDisplay()

  /// Nil when standard error is not a terminal that can erase lines, or has rows on it: then nothing is
  /// shown.
  ///
  /// - Parameter hasRows: rows go to standard output.
  init?(
    console: ErrorConsole, secrets: SecretMask, clock: ProcessClock, hasRows: Bool,
    environment: Environment = .process
  ) {
    guard ErrorConsole.canErase(environment), !hasRows || !StandardStream.output.isTerminal
    else { return nil }
    self.console = console
    self.secrets = secrets
    self.clock = clock
    self.start = clock.now
  }

  /// Cheap enough to be called after each batch: most calls draw nothing, and ask for nothing.
  func update(_ snapshot: () -> ProgressSnapshot) {
    let time = self.clock.now - self.start
    guard self.display.isDue(at: time) else { return }
    let lines = self.display.lines(
      snapshot(), at: time, wallTime: self.clock.wallTime, size: StandardStream.error.size)
    self.console.showProgress(.unended(lines, hiding: self.secrets))
  }

  /// Takes the lines away.
  func finish() { self.console.showProgress(nil) }

  /// Writes a line that stays.
  func leave(_ line: String) {
    self.console.write(PrintableText(line: line, hiding: self.secrets))
  }
}
