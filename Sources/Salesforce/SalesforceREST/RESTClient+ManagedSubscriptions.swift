internal import HTTPClient
internal import JSON

/// A record `ManagedEventSubscription`, from the Tooling API (TheService.md#managed-subscriptions).
package struct ManagedEventSubscription: Sendable, Equatable {
  package var topic: String
  /// `RUN`, `STOP` or `PAUSE`.
  package var state: String
  /// `LATEST` or `EARLIEST`; nil if the response does not say.
  package var defaultReplay: String?
  package var errorRecoveryReplay: String?

  package init(
    topic: String, state: String, defaultReplay: String?, errorRecoveryReplay: String?
  ) {
    self.topic = topic
    self.state = state
    self.defaultReplay = defaultReplay
    self.errorRecoveryReplay = errorRecoveryReplay
  }
}

extension RESTClient {
  /// The managed subscription with a developer name; nil if the org has none. Needs View Setup and
  /// Configuration.
  ///
  /// - Throws: `RESTError`, also for a response that names no topic or state.
  package func managedSubscription(
    developerName: String
  ) async throws -> ManagedEventSubscription? {
    precondition(SOQL.isName(developerName), "developer names are checked where they are read")
    return try await self.managedSubscription(
      where: "DeveloperName = '\(developerName)'", developerName)
  }

  /// The managed subscription with a record ID; nil if the org has none. Needs View Setup and
  /// Configuration.
  ///
  /// - Throws: `RESTError`, also for a response that names no topic or state.
  package func managedSubscription(id: String) async throws -> ManagedEventSubscription? {
    precondition(SOQL.isRecordID(id), "record IDs are checked where they are read")
    return try await self.managedSubscription(where: "Id = '\(id)'", id)
  }

  private func managedSubscription(
    where condition: String, _ name: String
  ) async throws -> ManagedEventSubscription? {
    // The Tooling API returns `Metadata` only for queries of one row.
    let page = try await self.toolingQuery(
      SOQL.select(
        ["Id", "DeveloperName", "Metadata"], from: "ManagedEventSubscription",
        where: condition) + " LIMIT 1")
    return try page.records.first.map { record throws(RESTError) in
      try Self.managedSubscription(record, "ManagedEventSubscription \(name)")
    }
  }

  static func managedSubscription(
    _ record: QueryRecord, _ name: String
  ) throws(RESTError) -> ManagedEventSubscription {
    let metadata = record.json["Metadata"]
    func text(_ key: String) -> String? {
      metadata?[key]?.string.flatMap { $0.isEmpty ? nil : $0.shown(upTo: 255) }
    }
    guard let topic = text("topicName"), let state = text("state") else {
      throw RESTError(.stop, "\(name): the response names no topic or no state")
    }
    return ManagedEventSubscription(
      topic: topic, state: state, defaultReplay: text("defaultReplay"),
      errorRecoveryReplay: text("errorRecoveryReplay"))
  }
}
