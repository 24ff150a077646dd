import PubSubAPI
import SalesforceREST

extension ConnectionCheck {
  /// A line about the record of the managed subscription. One call. A refused query does not fail
  /// the check, because runs do not make it.
  ///
  /// - Throws: `RunFailure` when the service would refuse a run.
  static func managed(
    _ record: ManagedSubscription.Record, topic: String, _ session: Session
  ) async throws(RunFailure) -> String {
    let client = session.connection.makeRESTClient()
    let found: ManagedEventSubscription?
    do {
      found =
        switch record {
        case .developerName(let name): try await client.managedSubscription(developerName: name)
        case .id(let id): try await client.managedSubscription(id: id)
        }
    } catch {
      let needsRight = (error as? RESTError)?.disposition == .describe
      return "managed subscription: \(record) is not checked: \(RunFailure(error).message)"
        + (needsRight ? "; to read the record, the user needs View Setup and Configuration" : "")
    }
    return try Self.line(found, record, topic: topic)
  }

  /// - Parameter found: nil if the org has no such record.
  static func line(
    _ found: ManagedEventSubscription?, _ record: ManagedSubscription.Record, topic: String
  ) throws(RunFailure) -> String {
    guard let found else {
      throw RunFailure(
        .managedNotFound,
        "managed subscription: the org has no ManagedEventSubscription \(record); correct "
          + "source.managed, or create the record (Tooling or Metadata API)")
    }
    guard found.topic.lowercased() == topic.lowercased() else {
      throw RunFailure(
        .managedTopic,
        "managed subscription: \(record) is for the topic '\(found.topic)', not for '\(topic)'; "
          + "correct source.managed or source.topic")
    }
    guard !["STOP", "PAUSE"].contains(found.state.uppercased()) else {
      throw RunFailure(
        .managedStopped,
        "managed subscription: \(record) is in the state \(found.state); set it to RUN (Tooling or "
          + "Metadata API); a change takes some minutes")
    }
    let replays = [
      found.defaultReplay.map { "defaultReplay \($0)" },
      found.errorRecoveryReplay.map { "errorRecoveryReplay \($0)" },
    ].compactMap { $0 }
    return "managed subscription: \(record) is for this topic and in the state \(found.state)"
      + (replays.isEmpty ? "" : " (\(replays.joined(separator: ", ")))")
      + "; whether a client has it is not checked"
  }
}
