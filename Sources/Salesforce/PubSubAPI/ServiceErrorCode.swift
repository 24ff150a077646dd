/// A value of the `error-code` trailer without its prefix `sfdc.platform.eventbus.grpc.`
/// (ServiceErrors.md#codes). Open-ended: codes that the service adds later are kept as text.
public struct ServiceErrorCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: String
  /// - Parameter rawValue: without the prefix, such as `topic.not.found`.
  public init(rawValue: String) { self.rawValue = rawValue }

  static let prefix = "sfdc.platform.eventbus.grpc."

  /// - Parameter trailer: a complete value of the trailer, with or without the prefix.
  init?(trailer: some StringProtocol) {
    let trimmed = trailer.drop { $0 == " " }
    let code = trimmed.hasPrefix(Self.prefix) ? trimmed.dropFirst(Self.prefix.count) : trimmed[...]
    guard !code.isEmpty else { return nil }
    self.rawValue = String(code)
  }

  // General
  /// The service is unavailable for now.
  public static let serviceUnavailable = Self(rawValue: "service.unavailable")
  /// The access token was refused.
  public static let authError = Self(rawValue: "service.auth.error")
  /// The metadata that carries the credentials was refused.
  public static let authHeadersInvalid = Self(rawValue: "service.auth.headers.invalid")
  /// A renewal of the token inside the call was refused.
  public static let authRefreshInvalid = Self(rawValue: "service.auth.refresh.invalid")
  /// The service sheds load.
  public static let protectionTriggered = Self(rawValue: "service.protection.triggered")
  /// Too many streams are open at the service.
  public static let protectionStreamLimitTriggered = Self(
    rawValue: "service.protection.stream.limit.triggered")
  /// The org has no license for the Pub/Sub API.
  public static let tenantLicense = Self(rawValue: "service.tenant.license")
  /// Too many clients of the org are connected.
  public static let concurrentClientLimitExceeded = Self(
    rawValue: "concurrent.client.limit.exceeded")

  // Topic and schema
  /// There is no such topic, or it is hidden from the user.
  public static let topicNotFound = Self(rawValue: "topic.not.found")
  /// The user may not see the topic.
  public static let topicMetaPermission = Self(rawValue: "topic.meta.permission")
  /// The topic cannot be looked up for now.
  public static let topicUnavailable = Self(rawValue: "topic.api.unavailable")
  /// The request names no topic.
  public static let topicEmpty = Self(rawValue: "topic.validation.empty")
  /// The user may not see the schema.
  public static let schemaMetaPermission = Self(rawValue: "schema.meta.permission")
  /// The schema cannot be looked up for now.
  public static let schemaUnavailable = Self(rawValue: "schema.api.unavailable")
  /// The ID cannot be that of a schema.
  public static let schemaValidationFailed = Self(rawValue: "schema.validation.failed")

  // Subscribe
  /// The replay ID is too old or belongs to another org.
  public static let replayIDCorrupted = Self(rawValue: "subscription.fetch.replayid.corrupted")
  /// The replay ID cannot be used.
  public static let replayIDValidationFailed = Self(
    rawValue: "subscription.fetch.replayid.validation.failed")
  /// A replay ID lower than the previous one appeared.
  public static let replayRepeated = Self(rawValue: "subscription.fetch.replay.repeated")
  /// A request asks for no events, or for too many.
  public static let requestedEventsInvalid = Self(
    rawValue: "subscription.fetch.requested.events.invalid")
  /// The response would be too large.
  public static let fetchOverflow = Self(rawValue: "subscription.fetch.overflow")
  /// A later request of the stream names another topic.
  public static let topicMismatch = Self(rawValue: "subscription.fetch.topic.mismatch")
  /// The request is malformed.
  public static let fetchRequestInvalid = Self(rawValue: "subscription.fetch.request.invalid")
  /// The user may not subscribe to the topic.
  public static let cannotSubscribe = Self(rawValue: "subscription.topic.cannot.subscribe")
  /// The org's delivery allowance is used up.
  public static let limitExceeded = Self(rawValue: "subscription.limit.exceeded")
  /// The subscription failed at the service.
  public static let internalError = Self(rawValue: "subscription.internal.error")

  // ManagedSubscribe
  /// Another client holds the subscription.
  public static let managedAlreadyActive = Self(
    rawValue: "managed.subscription.already.active")
  /// The subscription's state is STOP.
  public static let managedStopped = Self(rawValue: "managed.subscription.config.stopped")
  /// The subscription was deleted.
  public static let managedDeleted = Self(rawValue: "managed.subscription.config.deleted")
  /// The org has no subscription of this name.
  public static let managedNameNotFound = Self(
    rawValue: "managed.subscription.developer.name.not.found")
  /// The org has no subscription with this ID.
  public static let managedIDNotFound = Self(
    rawValue: "managed.subscription.subscription.id.not.found")
  /// The text is not the ID of a subscription.
  public static let managedIDInvalid = Self(
    rawValue: "managed.subscription.subscription.id.invalid")

  /// Codes by sentences that are known to occur in status messages, for proxies that drop trailers.
  private static let sentences: [(String, Self)] = [
    ("The service is unavailable. Try again later", .serviceUnavailable),
    ("An authentication exception occurred", .authError),
    ("The schema ID can't be blank", .schemaValidationFailed),
    ("The Replay ID validation failed", .replayIDCorrupted),
    (
      "The requested number of events in a fetch request must be greater than zero",
      .requestedEventsInvalid
    ),
    ("You have exceeded the event delivery limit for your org", .limitExceeded),
  ]

  /// The code in a status message, in full or as a known sentence.
  init?(message: String) {
    if let prefix = message.firstRange(of: Self.prefix) {
      let rest = message[prefix.upperBound...]
      let code = rest.prefix { $0.isASCII && ($0.isLetter || $0 == ".") }
      let trimmed = code.last == "." ? code.dropLast() : code
      if !trimmed.isEmpty {
        self.rawValue = String(trimmed)
        return
      }
    }
    guard let known = Self.sentences.first(where: { message.contains($0.0) }) else { return nil }
    self = known.1
  }
}
