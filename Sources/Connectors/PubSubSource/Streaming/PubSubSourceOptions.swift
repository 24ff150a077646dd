package import Clocks
package import Pipeline
package import PubSubAPI
package import SchemaStore

/// The settings of subscriptions.
package struct PubSubSourceOptions: Sendable {
  /// Events outstanding per stream, 1…100.
  package var window: Int
  /// The number of events of all topics that may wait for the runner, plus one response per stream.
  /// They count against the delivery allowance, and after a crash are delivered again.
  package var readAhead: Int
  /// The number of events of a topic after which no more are requested, because the run ends with
  /// them; nil for no limit.
  package var maxEvents: Int?
  /// The total number of events that may be delivered, including those exported before. Shared
  /// equally among the topics, each of which needs one. Nil for no limit.
  package var maxDelivered: Int?
  /// What the service may deliver; nil for no limit.
  package var allowance: DeliveryAllowance?
  /// The retries of temporary failures; they start again after a response with something new, or once a
  /// stream has answered for `Liveness.usefulLife`.
  package var retry: RetrySchedule
  package var recordIDs: EventDecodingOptions.RecordIDs
  /// Events that arrive within this time after a stop are still passed on. Others are delivered
  /// again, which counts against the allowance.
  package var drainTime = Duration.seconds(2)
  /// Whether a call failed because the server could not prove its identity.
  package var isIdentityError: @Sendable (any Error) -> Bool
  /// Receives a schema whose ID is not the fingerprint of its text; the schema is used anyway.
  package var onUnexpectedSchemaID: @Sendable (_ schemaID: String) -> Void
  /// Schemas of earlier runs; nil for none.
  package var schemaCache: SchemaCache?

  /// The subscription whose position the service also keeps; only with a single topic. Nil for
  /// `Subscribe`.
  package var managed: ManagedSubscription.Record?
  /// How long a run with a retry limit waits for a managed subscription that another client has;
  /// nil uses `retry`.
  package var subscriptionPatience: Duration?
  /// Called from any thread; must not block.
  package var onManaged: @Sendable (ManagedNotice) -> Void = { _ in }

  /// Called before a response is passed on, with the schemas of its events and their objects, or
  /// with none if it has no events. The receiver may need to learn more about the events than the
  /// service says. The response waits until this returns.
  package var beforeHandingOn:
    (@Sendable (_ schemas: [SchemaOfObject]) async throws(SourceFailure) -> Void)?

  /// A schema and the object to whose events it belongs.
  package struct SchemaOfObject: Sendable {
    package var entity: String
    package var schemaID: String
  }

  /// The maximum text size of the schemas kept, counted for the run and for each topic that needs
  /// them.
  var maxSchemaByteCount = 64 << 20

  package init(
    window: Int = 100, readAhead: Int = Self.readAhead, maxEvents: Int? = nil,
    retry: RetrySchedule = RetrySchedule(),
    recordIDs: EventDecodingOptions.RecordIDs = .rows,
    isIdentityError: @escaping @Sendable (any Error) -> Bool = { _ in false },
    onUnexpectedSchemaID: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.window = window
    self.readAhead = readAhead
    self.maxEvents = maxEvents
    self.retry = retry
    self.recordIDs = recordIDs
    self.isIdentityError = isIdentityError
    self.onUnexpectedSchemaID = onUnexpectedSchemaID
  }

  /// The overhead counted for each schema in addition to its text.
  static var schemaOverhead: Int { 16 << 10 }

  /// The number of events that may wait for the runner unless a commit has fewer: more arrive while
  /// one is being committed.
  package static var readAhead: Int { 2000 }

  /// The number of bytes of responses that may wait for the runner.
  static var readAheadBytes: Int { 8 << 20 }

  /// The number of events that may be delivered to one of several topics; nil for no limit.
  func allowance(ofTopic index: Int, among count: Int) -> Int? {
    let share = self.maxDelivered.map { $0 / count + (index < $0 % count ? 1 : 0) }
    return [share, self.maxEvents].compactMap { $0 }.min()
  }

  /// How much of `readAheadBytes` a response uses: its memory, or its share of the events if that
  /// is more.
  func weight(eventCount: Int, byteCount: Int) -> Int {
    max(byteCount + 256, eventCount * Self.readAheadBytes / max(self.readAhead, 1))
  }
}

extension PersistentCall.Failure {
  func failure(options: PubSubSourceOptions) -> SourceFailure {
    switch self.verdict {
    case .cancelled, .untrustedPeer: return self.error.failure(.unavailable, options: options)
    case .tokensRefused: return self.error.refusedForGood(options: options)
    case .gaveUp(let retries, let time):
      var failure = self.error.failure(.unavailable, options: options)
      failure.description += retries.verdict(at: time)
      return failure
    case .final(.replay): return self.error.failure(.invalidReplay, options: options)
    case .final(.quota): return self.error.failure(.quota, options: options)
    case .final(.bug): return self.error.failure(.bug, options: options)
    case .final: return self.error.failure(.refused, options: options)
    }
  }
}

extension PubSubError {
  func failure(
    _ disposition: SourceFailure.Disposition, options: PubSubSourceOptions
  ) -> SourceFailure {
    let reason = (self.serviceCode?.rawValue ?? "status_\(self.status)")
      .split(whereSeparator: { !$0.isLetter && !$0.isNumber }).joined(separator: "_")
    if let cause = self.cause, options.isIdentityError(cause) {
      return SourceFailure(.configuration, reason: "untrusted_peer", self.message)
    }
    // An oversized answer is the service's fault.
    let disposition = disposition == .bug && self.isOversizedAnswer ? .unavailable : disposition
    var failure = SourceFailure(
      disposition, reason: reason.lowercased(), self.message + self.advice(managed: options.managed)
    )
    failure.isOfTopicAlone = disposition == .refused && self.refusesTopicAlone
    return failure
  }

  /// The failure of a call whose tokens were refused, including new ones.
  fileprivate func refusedForGood(options: PubSubSourceOptions) -> SourceFailure {
    var error = self
    error.message +=
      "; new tokens are refused, too; check org_id, the instance URL and the user's "
      + "permissions, and that the app has the scope api. Also check whether the org's session "
      + "settings lock sessions to IP addresses or require high assurance"
    return error.failure(.refused, options: options)
  }

  /// The topic that the call was about, which the message names; empty if it names none.
  private var topic: String {
    let words = self.message.split { $0.isWhitespace || $0 == ":" }
    return words.first { TopicName.isValid(String($0)) }.map { String($0) } ?? ""
  }

  private static func existence(of topic: String) -> String {
    if TopicName.isChannel(topic), topic != TopicName.allChanges { return "the channel exists" }
    return TopicName.hasPlatformEvents(topic)
      ? "the platform event exists" : "the object is selected for Change Data Capture"
  }

  /// What to do about it, as the end of a message; empty where the message says it.
  package func advice(managed: ManagedSubscription.Record? = nil) -> String {
    switch self.serviceCode {
    case ServiceErrorCode.topicNotFound:
      "; check the spelling (topics are case sensitive) and that \(Self.existence(of: self.topic))"
    case ServiceErrorCode.cannotSubscribe:
      TopicName.hasPlatformEvents(self.topic)
        ? "; the run-as user needs Read on the platform event"
        : "; the run-as user needs View All on the object"
    case ServiceErrorCode.replayIDCorrupted, ServiceErrorCode.replayIDValidationFailed:
      "; the stored position is older than the 72 h the service keeps, or belongs to another "
        + "org" + Self.cause(managed) + ". Events may have been lost: run with "
        + "--set source.on_invalid_replay=earliest, then read the records again with 'snapshot'"
    case ServiceErrorCode.managedAlreadyActive:
      "; another client has the managed subscription, or a run was killed: then the service frees it "
        + "within about 15 minutes"
    case ServiceErrorCode.managedStopped:
      "; set the state of the ManagedEventSubscription to RUN (Tooling or Metadata API); a change "
        + "takes some minutes"
    case ServiceErrorCode.managedDeleted, ServiceErrorCode.managedNameNotFound,
      ServiceErrorCode.managedIDNotFound, ServiceErrorCode.managedIDInvalid:
      "; check source.managed against the ManagedEventSubscription records of the org (Tooling or "
        + "Metadata API); a new one takes some minutes"
    case ServiceErrorCode.limitExceeded:
      "; the org's event delivery allowance for 24 h is used up; the position is kept, so run "
        + "again later"
    default: ""
    }
  }

  /// A keepalive does not name its topic, and may be all that a first run has received.
  private static func cause(_ managed: ManagedSubscription.Record?) -> String {
    managed.map {
      ", or was stored while source.managed (\($0)) was a subscription of another topic "
        + "('check --connect' compares the two)"
    } ?? ""
  }
}
