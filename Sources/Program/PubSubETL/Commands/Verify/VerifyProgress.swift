internal import Clocks
import EventLoop

/// The progress of `verify` on the terminal of standard error: one line.
final class VerifyProgress: Sendable {
  /// What is known of the work.
  struct Work {
    var partCount = 0
    var comparedCount = 0
    /// Objects whose records are being read, in the order in which they began.
    var reading: [String] = []
    /// Records that the org has returned.
    var recordCount: Int64 = 0
    var pace = ProgressPace()

    /// `12,345/s  192,252 records read  1 of 3 compared  reading Account, Opportunity`
    var line: String {
      var parts = [
        "\(ProgressLine.grouped(self.pace.rate))/s",
        "\(Phrase.count(Int(self.recordCount), "record")) read",
        "\(self.comparedCount) of \(self.partCount) compared",
      ]
      if !self.reading.isEmpty {
        parts.append("reading \(self.reading.joined(separator: ", "))")
      }
      return parts.joined(separator: "  ")
    }
  }

  private struct State {
    var work = Work()
    var nextDrawing: ContinuousClock.Instant?
  }

  private let console: ErrorConsole
  private let secrets: SecretMask
  private let clock: ProcessClock
  private let start: ContinuousClock.Instant
  private let isShown: Bool
  private let state = Lock(State())

  init(
    console: ErrorConsole, secrets: SecretMask, clock: ProcessClock,
    isShown: Bool = ErrorConsole.canErase()
  ) {
    self.console = console
    self.secrets = secrets
    self.clock = clock
    self.start = clock.now
    self.isShown = isShown
  }

  func begin(partCount: Int) { self.change { $0.partCount = partCount } }

  func reads(_ entity: String) { self.change { $0.reading.append(entity) } }

  /// - Parameter count: below zero if they will be read again.
  func read(_ count: Int) { self.change { $0.recordCount += Int64(count) } }

  /// All records of an object were read and compared with one copy.
  func compared(_ entity: String) {
    self.change { work in
      work.comparedCount += 1
      if let index = work.reading.firstIndex(of: entity) { work.reading.remove(at: index) }
    }
  }

  /// Writes a line that stays.
  func leave(_ line: String) {
    self.console.write(PrintableText(line: line, hiding: self.secrets))
  }

  /// Waits, and shows how long that will still take.
  ///
  /// - Throws: `CancellationError`.
  func wait(until end: ContinuousClock.Instant) async throws {
    guard self.isShown else { return try await self.clock.sleep(until: end) }
    while self.clock.now < end {
      self.draw("reading again in \(Phrase.duration(end - self.clock.now))")
      try await self.clock.sleep(until: min(end, self.clock.now + .seconds(1)))
    }
    self.finish()
  }

  /// Takes the line away.
  func finish() { self.console.showProgress(nil) }

  /// Cheap enough to be called for each response: most calls draw nothing.
  private func change(_ body: (inout Work) -> Void) {
    let now = self.clock.now
    let line = self.state.withLock { state -> String? in
      body(&state.work)
      guard self.isShown, state.nextDrawing.map({ now >= $0 }) ?? true else { return nil }
      state.nextDrawing = now + ProgressDisplay.interval
      state.work.pace.note(
        events: state.work.recordCount, newestCommit: nil, at: now - self.start)
      return state.work.line
    }
    if let line { self.draw(line) }
  }

  private func draw(_ line: String) {
    self.console.showProgress(
      .unended(
        [ProgressLine.fitted(line, width: StandardStream.error.size.columns - 1)],
        hiding: self.secrets))
  }
}
