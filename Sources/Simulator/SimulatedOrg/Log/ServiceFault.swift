/// An answer that ends a call: gRPC status, `error-code` trailer and message.
///
/// Source: ServiceErrors.md#codes.
package struct ServiceFault: Error, Equatable, Sendable {
  /// gRPC status codes, by number.
  package enum Status: Int, Sendable {
    case ok = 0
    case cancelled = 1
    case unknown = 2
    case invalidArgument = 3
    case deadlineExceeded = 4
    case notFound = 5
    case alreadyExists = 6
    case permissionDenied = 7
    case resourceExhausted = 8
    case failedPrecondition = 9
    case aborted = 10
    case outOfRange = 11
    case unimplemented = 12
    case internalError = 13
    case unavailable = 14
    case dataLoss = 15
    case unauthenticated = 16
  }

  package var status: Status
  /// Without the prefix `sfdc.platform.eventbus.grpc.`; nil: no such trailer.
  package var code: String?
  package var message: String

  package init(status: Status, code: String?, message: String) {
    self.status = status
    self.code = code
    self.message = message
  }

  static func topicNotFound(_ topic: String, tenant: String) -> ServiceFault {
    ServiceFault(
      status: .notFound, code: "topic.not.found",
      message:
        "The requested topic \(topic) in the tenant \(tenant) does not exist or isn't enabled for Change Data Capture."
    )
  }

  static let topicEmpty = ServiceFault(
    status: .invalidArgument, code: "topic.validation.empty",
    message: "The topic name can't be empty.")

  static let schemaBlank = ServiceFault(
    status: .invalidArgument, code: "schema.validation.failed",
    message: "The schema ID can't be blank.")

  package static func schemaUnknown(_ id: String) -> ServiceFault {
    ServiceFault(
      status: .invalidArgument, code: "schema.validation.failed",
      message: "The schema ID \(id) is invalid or can't be read.")
  }

  static let replayCorrupted = ServiceFault(
    status: .invalidArgument, code: "subscription.fetch.replayid.corrupted",
    message:
      "The Replay ID validation failed. Ensure that the Replay ID is valid and within the retention window."
  )

  package static let deliveryLimit = ServiceFault(
    status: .resourceExhausted, code: "subscription.limit.exceeded",
    message: "You have exceeded the event delivery limit for your org.")

  package static let clientLimit = ServiceFault(
    status: .resourceExhausted, code: "concurrent.client.limit.exceeded",
    message: "The limit of concurrent clients is exceeded.")

  package static let replayMissing = ServiceFault(
    status: .invalidArgument, code: "subscription.fetch.replayid.validation.failed",
    message: "A Replay ID is required when the replay preset is CUSTOM.")

  package static let requestedEventsInvalid = ServiceFault(
    status: .invalidArgument, code: "subscription.fetch.requested.events.invalid",
    message: "The requested number of events in a fetch request must be greater than zero.")

  package static let topicMismatch = ServiceFault(
    status: .invalidArgument, code: "subscription.fetch.topic.mismatch",
    message: "The topic name can't change within a subscription. Start another call.")

  package static let authentication = ServiceFault(
    status: .unauthenticated, code: "service.auth.error",
    message:
      "An authentication exception occurred. Provide a valid access token, instance URL and tenant ID."
  )

  package static let headersInvalid = ServiceFault(
    status: .unauthenticated, code: "service.auth.headers.invalid",
    message: "The authentication headers accesstoken, instanceurl and tenantid are required.")

  package static func unimplemented(_ path: String) -> ServiceFault {
    ServiceFault(status: .unimplemented, code: nil, message: "Method not found: \(path)")
  }

  package static func malformedMessage(_ type: String) -> ServiceFault {
    ServiceFault(
      status: .internalError, code: nil, message: "The request is not a valid \(type) message.")
  }
}
