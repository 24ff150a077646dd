/// A value of the `error-code` trailer without its prefix `sfdc.platform.eventbus.grpc.`
/// (ServiceErrors.md#codes). Open: a code the service adds later is kept as text.
public struct ServiceErrorCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }

  static let prefix = "sfdc.platform.eventbus.grpc."

  /// - Parameter trailer: a whole value of the trailer, with or without the prefix.
  init?(trailer: some StringProtocol) {
    let trimmed = trailer.drop { $0 == " " }
    let code = trimmed.hasPrefix(Self.prefix) ? trimmed.dropFirst(Self.prefix.count) : trimmed[...]
    guard !code.isEmpty else { return nil }
    self.rawValue = String(code)
  }

  // General
  public static let serviceUnavailable = Self(rawValue: "service.unavailable")
  public static let authError = Self(rawValue: "service.auth.error")
  public static let authHeadersInvalid = Self(rawValue: "service.auth.headers.invalid")
  public static let authRefreshInvalid = Self(rawValue: "service.auth.refresh.invalid")
  public static let protectionTriggered = Self(rawValue: "service.protection.triggered")
  public static let protectionStreamLimitTriggered = Self(
    rawValue: "service.protection.stream.limit.triggered")
  public static let tenantLicense = Self(rawValue: "service.tenant.license")
  public static let concurrentClientLimitExceeded = Self(
    rawValue: "concurrent.client.limit.exceeded")

  // Topic and schema
  public static let topicNotFound = Self(rawValue: "topic.not.found")
  public static let topicMetaPermission = Self(rawValue: "topic.meta.permission")
  public static let topicUnavailable = Self(rawValue: "topic.api.unavailable")
  public static let topicEmpty = Self(rawValue: "topic.validation.empty")
  public static let schemaMetaPermission = Self(rawValue: "schema.meta.permission")
  public static let schemaUnavailable = Self(rawValue: "schema.api.unavailable")
  public static let schemaValidationFailed = Self(rawValue: "schema.validation.failed")

  // Subscribe
  public static let replayIDCorrupted = Self(rawValue: "subscription.fetch.replayid.corrupted")
  public static let replayIDValidationFailed = Self(
    rawValue: "subscription.fetch.replayid.validation.failed")
  public static let replayRepeated = Self(rawValue: "subscription.fetch.replay.repeated")
  public static let requestedEventsInvalid = Self(
    rawValue: "subscription.fetch.requested.events.invalid")
  public static let fetchOverflow = Self(rawValue: "subscription.fetch.overflow")
  public static let topicMismatch = Self(rawValue: "subscription.fetch.topic.mismatch")
  public static let fetchRequestInvalid = Self(rawValue: "subscription.fetch.request.invalid")
  public static let cannotSubscribe = Self(rawValue: "subscription.topic.cannot.subscribe")
  public static let limitExceeded = Self(rawValue: "subscription.limit.exceeded")
  public static let internalError = Self(rawValue: "subscription.internal.error")

  /// Codes by sentences that are known to stand in status messages, for proxies that drop
  /// trailers.
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

  /// The code that a status message holds, in full or as a known sentence.
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
