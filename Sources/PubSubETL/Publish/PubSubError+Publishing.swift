import GRPCCore
import PubSubAPI

extension PubSubError {
  /// The call was refused before anything of it was published: the same events can be sent again.
  ///
  /// Nothing is certain of a call that has answered something, nor of a status that is not the service's
  /// own: a proxy that answers 401 or 404 may have passed the request on.
  var publishedNothing: Bool {
    if self.hasResponse { return false }
    if self.isUnprocessed { return true }
    switch self.code {
    // There was no call.
    case .credentials, .credentialsRetryable: return true
    case .service where self.isRefusal: break
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
  var isAllowanceUsedUp: Bool {
    Self.words(of: self.statusMessage).contains { $0 == Self.allowanceMark }
  }

  /// Whether the service's message about an event says that an allowance is used up. The rest of a
  /// message may quote the event.
  static func beginsWithAllowanceMark(_ message: String) -> Bool {
    Self.words(of: message).first.map { $0 == Self.allowanceMark } ?? false
  }

  /// The code of a used-up allowance in the service's messages.
  private static let allowanceMark = "LIMIT_EXCEEDED"

  private static func words(of message: String) -> [Substring] {
    message.split { !($0.isLetter || $0.isNumber || $0 == "_") }
  }
}
