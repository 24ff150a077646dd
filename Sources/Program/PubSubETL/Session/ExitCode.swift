import ArgumentParser

/// The exit codes of the process. Stable, because scripts and schedulers rely on them.
enum ExitCode: Int32, Sendable, CaseIterable {
  /// Success, including a reached limit, and a clean stop by signal when following.
  case success = 0
  /// The output differs from a test's expectation.
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
  /// The pipeline file, the identity of a TLS peer, or a system without `/proc`.
  case configuration = 78
  /// Second SIGHUP.
  case hungUp = 129
  /// Second SIGINT.
  case interrupted = 130
  /// Second SIGTERM.
  case terminated = 143

  /// Thrown from a command's `run`, it ends the process with this code without a message.
  var error: any Error { ArgumentParser.ExitCode(self.rawValue) }
}
