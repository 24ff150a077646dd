import GRPCCore
import PubSubAPI

extension PubSubError {
  /// The call was refused before anything of it was published: the same events can be sent again.
  ///
  /// Of a stream, this holds only for requests of a call that has answered none.
  var publishedNothing: Bool {
    if self.isUnprocessed { return true }
    switch self.code {
    // There was no call.
    case .credentials, .credentialsRetryable: return true
    case .service: break
    default: return false
    }
    switch self.serviceCode {
    case ServiceErrorCode.authError, .authHeadersInvalid, .authRefreshInvalid,
      .publishAuthRefreshInvalid, .protectionTriggered, .protectionStreamLimitTriggered,
      .concurrentClientLimitExceeded, .tenantLicense, .topicNotFound, .topicMetaPermission,
      .topicUnavailable, .topicEmpty, .schemaMetaPermission, .schemaUnavailable,
      .schemaValidationFailed, .publishTopicMismatch, .publishTopicEmpty,
      .publishEventCountInvalid:
      return true
    default: break
    }
    switch self.status {
    case .unauthenticated, .permissionDenied, .notFound, .invalidArgument, .unimplemented,
      .failedPrecondition:
      return true
    default: return self.isAllowanceUsedUp
    }
  }

  /// The org may publish no more events in this hour.
  var isAllowanceUsedUp: Bool { self.message.contains(Self.allowanceMark) }

  /// What the service's messages contain when an allowance is used up.
  static let allowanceMark = "LIMIT_EXCEEDED"
}
