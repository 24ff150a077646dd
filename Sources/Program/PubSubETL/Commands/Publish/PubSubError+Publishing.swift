import GRPCCore
import PubSubAPI

extension PubSubError {
  /// Whether the call was refused before anything was published, so that the same events can be
  /// sent again.
  ///
  /// Nothing is certain if the call has sent an answer, or if the status is not the service's own:
  /// a proxy that answers 401 or 404 may have forwarded the request.
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

  /// Whether the org may publish no more events in this hour.
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
