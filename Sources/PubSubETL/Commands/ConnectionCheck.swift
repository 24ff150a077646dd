/// What `check --connect` does beyond reading the file: log in, ask for every topic, connect to every
/// database.
enum ConnectionCheck {
  /// Something the service or a database refused, or that kept us from asking.
  struct Failure: Error {
    var exitCode: ExitCode
    /// What failed, on which thing, what to do.
    var message: String
  }
}
