/// What `check --connect` does beyond reading the file: log in and ask for every topic.
struct ConnectionCheck: Sendable {
  /// Something the service refused, or that kept us from asking.
  struct Failure: Error {
    var exitCode: ExitCode
    /// What failed, on which thing, what to do.
    var message: String
  }

  /// A line per thing that was found to work, for standard output.
  var run: @Sendable (PipelineConfiguration) async throws(Failure) -> [String]

  /// The check against the real service.
  static let live: ConnectionCheck? = nil
}
