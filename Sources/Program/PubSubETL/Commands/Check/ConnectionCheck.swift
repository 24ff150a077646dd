/// What `check --connect` does beyond reading the file: log in, ask for every topic, connect to every
/// database.
enum ConnectionCheck {
  /// Something the service or a database refused, or that kept us from asking.
  struct Failure: Error {
    var exitCode: ExitCode
    /// What failed, on which thing, what to do.
    var message: String
    /// Those of others that were found together with it.
    var otherMessages: [String] = []
  }
}

extension ConnectionCheck.Failure {
  /// Nil without failures. The first decides the exit code.
  init?(_ failures: [RunFailure]) {
    guard let first = failures.first else { return nil }
    self.init(
      exitCode: first.exitCode, message: first.message,
      otherMessages: failures.dropFirst().map(\.message))
  }
}
