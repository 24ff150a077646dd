/// What `check --connect` does beyond reading the file: log in and ask for every topic.
enum ConnectionCheck {
  /// Something the service refused, or that kept us from asking.
  struct Failure: Error {
    var exitCode: ExitCode
    /// What failed, on which thing, what to do.
    var message: String
  }
}
