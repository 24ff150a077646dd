/// The error codes of the service, each with the gRPC status it comes with.
///
/// Source: ServiceErrors.md#codes. A status that the page marks as unverified is an assumption from
/// the code's meaning.
package struct ServiceErrorCode: Sendable {
  /// Without the prefix `sfdc.platform.eventbus.grpc.`.
  package var code: String
  package var status: ServiceFault.Status
  package var message: String

  private init(_ code: String, _ status: ServiceFault.Status, _ message: String) {
    (self.code, self.status, self.message) = (code, status, message)
  }

  package static func named(_ code: String) -> ServiceErrorCode? {
    Self.all.first { $0.code == code }
  }

  package static let all: [ServiceErrorCode] =
    Self.general + Self.topics + Self.subscriptions + Self.publishing + Self.managed

  private static let general: [ServiceErrorCode] = [
    .init(
      "service.unavailable", .unavailable, "The service is unavailable. Try again later."),
    .init("service.auth.error", .unauthenticated, ServiceFault.authentication.message),
    .init("service.auth.headers.invalid", .unauthenticated, ServiceFault.headersInvalid.message),
    .init(
      "service.auth.refresh.invalid", .unauthenticated, "The session could not be refreshed."),
    .init("service.protection.triggered", .resourceExhausted, "Too many requests. Slow down."),
    .init(
      "service.protection.stream.limit.triggered", .resourceExhausted,
      "Too many requests on one stream."),
    .init("service.tenant.license", .permissionDenied, "The org isn't licensed for the API."),
    .init(
      "concurrent.client.limit.exceeded", .resourceExhausted,
      "The limit of concurrent clients is exceeded."),
  ]

  private static let topics: [ServiceErrorCode] = [
    .init("topic.not.found", .notFound, "The requested topic does not exist."),
    .init("topic.meta.permission", .permissionDenied, "The topic's metadata can't be read."),
    .init("topic.api.unavailable", .unavailable, "The topic service is unavailable."),
    .init("topic.validation.empty", .invalidArgument, ServiceFault.topicEmpty.message),
    .init("schema.meta.permission", .permissionDenied, "The schema can't be read."),
    .init("schema.api.unavailable", .unavailable, "The schema service is unavailable."),
    .init("schema.validation.failed", .invalidArgument, ServiceFault.schemaBlank.message),
  ]

  private static let subscriptions: [ServiceErrorCode] = [
    .init(
      "subscription.fetch.replayid.corrupted", .invalidArgument,
      ServiceFault.replayCorrupted.message),
    .init(
      "subscription.fetch.replayid.validation.failed", .invalidArgument,
      "The Replay ID validation failed."),
    .init(
      "subscription.fetch.replay.repeated", .internalError, "A lower Replay ID was repeated."),
    .init(
      "subscription.fetch.requested.events.invalid", .invalidArgument,
      ServiceFault.requestedEventsInvalid.message),
    .init(
      "subscription.fetch.overflow", .resourceExhausted,
      "More events were requested than were consumed."),
    .init(
      "subscription.fetch.topic.mismatch", .invalidArgument, ServiceFault.topicMismatch.message),
    .init(
      "subscription.fetch.request.invalid", .invalidArgument, "The fetch request is invalid."),
    .init(
      "subscription.topic.cannot.subscribe", .permissionDenied,
      "The user isn't allowed to subscribe to the topic."),
    .init("subscription.limit.exceeded", .resourceExhausted, ServiceFault.deliveryLimit.message),
    .init("subscription.internal.error", .internalError, "An internal error occurred."),
  ]

  private static let publishing: [ServiceErrorCode] = [
    .init("publish.topic.mismatch", .invalidArgument, "The topic can't change within a call."),
    .init("publish.topic.validation.empty", .invalidArgument, "The topic name can't be empty."),
    .init("publish.event.count.invalid", .invalidArgument, "The request contains no events."),
    .init("publish.stream.sweeper.timeout", .deadlineExceeded, "The idle stream was closed."),
    .init(
      "publish.auth.refresh.invalid", .unauthenticated, "The session could not be refreshed."),
  ]

  private static let managedTexts: [(code: String, status: ServiceFault.Status, text: String)] = [
    ("already.active", .alreadyExists, "The managed subscription is already active."),
    ("config.stopped", .failedPrecondition, "The managed subscription is stopped."),
    ("config.deleted", .notFound, "The managed subscription was deleted."),
    ("developer.name.not.found", .notFound, "The developer name was not found."),
    ("subscription.id.not.found", .notFound, "The subscription ID was not found."),
    ("subscription.id.invalid", .invalidArgument, "The subscription ID is invalid."),
    (
      "id.or.developer.name.empty", .invalidArgument,
      "Neither the subscription ID nor the developer name is given."
    ),
    (
      "fetch.request.events.invalid", .invalidArgument,
      "The requested number of events is invalid."
    ),
    ("fetch.request.invalid", .invalidArgument, "The fetch request is invalid."),
    (
      "fetch.request.commit.request.restricted", .invalidArgument,
      "The first request can't contain a commit."
    ),
    (
      "fetch.request.auth.request.restricted", .invalidArgument,
      "The request can't contain an authentication request."
    ),
  ]

  private static let managed = Self.managedTexts.map {
    ServiceErrorCode("managed.subscription.\($0.code)", $0.status, $0.text)
  }
}
