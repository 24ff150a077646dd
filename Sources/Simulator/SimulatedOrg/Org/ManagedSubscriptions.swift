/// The managed subscriptions of the org and the positions that it keeps for them.
///
/// Source: TheService.md#managed-subscriptions. Times are epoch milliseconds of the org's clock.
package struct ManagedSubscriptions {
  /// A record `ManagedEventSubscription`.
  package struct Record: Sendable {
    package var developerName: String
    /// 18 characters.
    package var id: String
    package var topic: String
    /// Where a client begins before anything was committed.
    package var defaultReplay = ReplayPreset.latest
    /// Where a client begins when the committed position cannot be used any more.
    package var errorRecoveryReplay = ReplayPreset.earliest
    package var isRunning = true
    /// The last position that was committed.
    package var committed: [UInt8]?
    package var commitCount = 0
    /// How many of the next commits are refused.
    package var refusals = 0
    /// Commits are answered after so many milliseconds, all in one answer; 0: each at once.
    package var answerDelay = 0
    /// The RPC ID of the client that has it.
    fileprivate var holder: String?
    /// A client was lost: nobody gets it before this time.
    fileprivate var heldUntil: Int64?

    package var isActive: Bool { self.holder != nil }
  }

  /// How long the subscription stays taken after a client has gone without closing its call.
  package static let holdTime: Int64 = 15 * 60_000
  /// A client that commits nothing for so long is sent away.
  package static let commitTime: Int64 = 1800_000

  package private(set) var records: [Record] = []

  package init() {}

  /// Adds a record, or changes the one of this name.
  package mutating func set(
    _ developerName: String, topic: String?, _ change: (inout Record) -> Void
  ) throws {
    if let index = self.records.firstIndex(where: { $0.developerName == developerName }) {
      change(&self.records[index])
      return
    }
    guard let topic else {
      throw SimulatorError(
        .configuration, "managed subscription \(developerName): topic= is needed for a new one")
    }
    let number = String(self.records.count + 1)
    var record = Record(
      developerName: developerName,
      id: "18x" + String(repeating: "0", count: 12 - number.count) + number + "AAA", topic: topic)
    change(&record)
    self.records.append(record)
  }

  /// The record that a first request names.
  package func find(developerName: String, id: String) throws(ServiceFault) -> Int {
    if developerName.isEmpty == id.isEmpty { throw Self.fault("id.or.developer.name.empty") }
    if id.isEmpty {
      guard let index = self.records.firstIndex(where: { $0.developerName == developerName }) else {
        throw Self.fault("developer.name.not.found")
      }
      return index
    }
    guard [15, 18].contains(id.utf8.count) else { throw Self.fault("subscription.id.invalid") }
    guard let index = self.records.firstIndex(where: { $0.id.hasPrefix(id.prefix(15)) }) else {
      throw Self.fault("subscription.id.not.found")
    }
    return index
  }

  /// Gives the subscription to a client.
  package mutating func take(_ index: Int, by client: String, at now: Int64) throws(ServiceFault) {
    guard self.records[index].isRunning else { throw Self.fault("config.stopped") }
    if self.records[index].isActive || self.records[index].heldUntil.map({ now < $0 }) == true {
      throw Self.fault("already.active")
    }
    self.records[index].holder = client
    self.records[index].heldUntil = nil
  }

  /// The client has gone.
  ///
  /// - Parameter isClean: it has closed its call, or the service has ended it.
  package mutating func release(_ index: Int, isClean: Bool, at now: Int64) {
    self.records[index].holder = nil
    self.records[index].heldUntil = isClean ? nil : now + Self.holdTime
  }

  /// Stores a position.
  ///
  /// - Returns: why not; nil when it is stored.
  package mutating func commit(_ replayID: [UInt8], _ index: Int, isValid: Bool) -> String? {
    if self.records[index].refusals > 0 {
      self.records[index].refusals -= 1
      return "The Replay ID could not be committed."
    }
    guard isValid else { return "The Replay ID is invalid." }
    self.records[index].committed = replayID
    self.records[index].commitCount += 1
    return nil
  }

  package static func fault(_ code: String) -> ServiceFault {
    guard let known = ServiceErrorCode.named("managed.subscription.\(code)") else {
      preconditionFailure("no such code: \(code)")
    }
    return ServiceFault(status: known.status, code: known.code, message: known.message)
  }

  /// 1800 s without a commit.
  package static let noCommit = ServiceFault(
    status: .deadlineExceeded, code: nil,
    message: "No commit was received for 1800 seconds; the managed subscription was ended.")
}
