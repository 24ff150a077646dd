extension RunReport {
  /// What the end of a run says about its pipeline.
  enum Standing: Equatable {
    case works
    case fails(Incident.Finding)
    /// Somebody stopped it, or another run has the pipeline.
    case unknown
  }

  /// A run that its time limit ends before the stream is caught up, and that has read something, works: the
  /// next one continues.
  var standing: Standing {
    let reason = EndReason(rawValue: self.reason)
    switch self.exitCode {
    case _ where reason == .signal: return .unknown
    case .success: return reason == .alreadyRunning ? .unknown : .works
    case .tryAgain where self.isProgress: return .works
    default:
      return .fails(
        Incident.Finding(
          message: self.message ?? "exit code \(self.exitCode.rawValue)", reason: self.reason,
          exitCode: self.exitCode.rawValue))
    }
  }

  /// Whether the run was ended by its time limit and has come closer to the end of the stream.
  var isProgress: Bool {
    guard self.exitCode == .tryAgain, EndReason(rawValue: self.reason) == .maxDuration
    else { return false }
    return self.topics.contains { $0.events > 0 } || self.records.read > 0
      || self.records.repaired > 0
  }
}
