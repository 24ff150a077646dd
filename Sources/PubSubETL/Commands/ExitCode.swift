import ArgumentParser

/// What the process ends with. Stable: scripts and schedulers rely on them.
enum ExitCode: Int32, Sendable, CaseIterable {
  /// Done; also a limit asked for was reached, or a clean stop by signal when following.
  case success = 0
  /// What came out is not what a test expects.
  case difference = 1
  /// The command line, or a test file.
  case usage = 64
  /// Data or position: invalid replay ID, lost state, dead-letter limit, `run.fail_on`.
  case data = 65
  /// Service unavailable after the retry budget.
  case unavailable = 69
  /// A defect of this program.
  case `internal` = 70
  /// A sink or the checkpoint could not be written.
  case output = 74
  /// Try again: another owner, quota, stopped before caught up, no first position, no
  /// descriptors or threads left.
  case tryAgain = 75
  /// Login, permission or topic refused.
  case refused = 77
  /// The pipeline file, or the identity of a TLS peer.
  case configuration = 78
  /// Second SIGINT.
  case interrupted = 130
  /// Second SIGTERM.
  case terminated = 143

  /// Thrown from a command's `run`, ends the process with this code and says nothing.
  var error: any Error { ArgumentParser.ExitCode(self.rawValue) }
}
