import EventLoop
import Foundation
import Glibc
import Rehearsal

/// The live line of a rehearsal on a terminal: `day 3 of 30, 812 runs, about 4 min left`.
final class RehearsalDisplay: Sendable {
  private static let interval = Duration.milliseconds(500)
  /// The first estimate is made after this time.
  private static let shortestPeriod = Duration.seconds(2)

  private let isShown = isatty(STDERR_FILENO) == 1
  private let start = ContinuousClock.now
  private let shownAt = Lock<ContinuousClock.Instant?>(nil)

  /// Cheap enough to be called often.
  func show(_ progress: Rehearsal.Progress) {
    guard self.isShown else { return }
    let now = ContinuousClock.now
    let isDue = self.shownAt.withLock { shownAt in
      if let shownAt, now - shownAt < Self.interval { return false }
      shownAt = now
      return true
    }
    guard isDue else { return }
    Self.write("\r\u{1B}[K\(Self.text(progress, after: now - self.start))")
  }

  func finish() {
    if self.isShown { Self.write("\r\u{1B}[K") }
  }

  /// - Parameter elapsed: real time.
  static func text(_ progress: Rehearsal.Progress, after elapsed: Duration) -> String {
    let day: Int64 = 86_400_000
    let days = progress.length / day
    var text =
      "day \(min(days, progress.elapsed / day + 1)) of \(days), "
      + "\(progress.runs) run\(progress.runs == 1 ? "" : "s")"
    if elapsed >= Self.shortestPeriod, progress.elapsed > 0 {
      let rest = Double(progress.length - progress.elapsed) / Double(progress.elapsed)
      let seconds = (elapsed * rest).components.seconds + 1
      text += seconds < 60 ? ", about \(seconds) s left" : ", about \(seconds / 60 + 1) min left"
    }
    return text
  }

  private static func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}
