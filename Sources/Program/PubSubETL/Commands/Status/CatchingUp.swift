/// How far a pipeline is behind whose last run a limit ended, and how long it takes until it is not. The service
/// does not say how many events are left, so this rests on commit times: how fast the last run went through
/// them, while new changes are made.
struct CatchingUp: Equatable {
  /// Commit times that the last run went through, in milliseconds.
  var exported: Int64
  /// How long that took, in milliseconds.
  var took: Int64
  /// From the newest exported change to the present, in milliseconds.
  var behind: Int64
  /// How long runs have to work, in milliseconds; nil if they do not get closer to the present.
  var left: Int64?

  /// - Parameter now: milliseconds since 1970.
  /// - Returns: nil if the last run was not ended by a limit, or had no changes with commit times.
  init?(_ run: LastRun, now: Int64) {
    guard run.isProgress, let startedAt = run.startedAtMilliseconds,
      let finishedAt = run.endedAtMilliseconds,
      let slowest = run.changes.min(by: { $0.newest < $1.newest })
    else { return nil }
    // Texts of times have years of four digits, so no difference overflows.
    self.exported = slowest.newest - slowest.first
    self.took = max(1, finishedAt - startedAt)
    self.behind = max(0, now - slowest.newest)
    guard self.exported > self.took else { return }
    let speed = Double(self.exported) / Double(self.took)
    self.left = Int64(Double(self.behind) / (speed - 1))
  }

  var text: String {
    let basis =
      "the last run exported \(ProgressLine.age(milliseconds: self.exported)) of changes in "
      + ProgressLine.age(milliseconds: self.took)
    let behind = ProgressLine.age(milliseconds: self.behind)
    guard let left else { return "\(behind) behind and not getting closer: \(basis)" }
    return "catching up, about \(Self.rounded(left)) of runs left: \(behind) behind, and \(basis)"
  }

  /// `14 min`, `2 h 30 min`: an estimate has no seconds.
  private static func rounded(_ milliseconds: Int64) -> String {
    let minutes = max(1, (milliseconds + 30_000) / 60_000)
    return minutes < 60 ? "\(minutes) min" : ProgressLine.age(milliseconds: minutes * 60_000)
  }
}
