internal import GRPCCore

extension PubSubError {
  /// What to do about a failed call (ServiceErrors.md#decision-classes).
  public enum Disposition: Equatable, Sendable {
    /// The same call may succeed later, not before `minimumDelay`.
    case retry(minimumDelay: Duration)
    /// The access token was refused: call again with a new one.
    case reauthenticate
    /// The replay ID cannot be used: it is older than the 72 hours that the service retains, or
    /// belongs to another org. The caller decides where to begin instead.
    case replay
    /// The delivery allowance is used up.
    case quota
    /// Configuration or permission: somebody has to change something.
    case stop
    /// The request was malformed: the fault is in the caller or in this package.
    case bug
  }

  /// The minimum wait of a run that follows when an allowance is used up.
  package static let quotaDelay = Duration.seconds(300)

  /// What a caller should do about this error.
  ///
  /// - Parameter sentReplayID: whether the call was a subscription that began after a replay ID.
  public func disposition(sentReplayID: Bool) -> Disposition {
    switch self.code {
    case .endOfStream, .idle, .credentialsRetryable: return .retry(minimumDelay: .zero)
    case .credentials: return .stop
    case .malformedResponse: return .retry(minimumDelay: .zero)
    default: break
    }
    if let code = self.serviceCode, let known = Self.byCode(code, sentReplayID: sentReplayID) {
      return known
    }
    switch self.status {
    case .unauthenticated: return .reauthenticate
    case .permissionDenied, .notFound, .unimplemented, .failedPrecondition: return .stop
    case .invalidArgument, .outOfRange: return .bug
    // A refusal comes from a component in front of the service that sheds load.
    case .resourceExhausted:
      return self.isRefusal ? .retry(minimumDelay: .seconds(30)) : .bug
    default: return .retry(minimumDelay: .zero)
    }
  }

  /// Whether an answer was larger than this client reads: the transport fails a call with this status.
  package var isOversizedAnswer: Bool {
    self.status == .resourceExhausted && self.serviceCode == nil && !self.isRefusal
  }

  /// Whether the error refuses only the topic or a schema of its events, so that other topics may
  /// still be served.
  package var refusesTopicAlone: Bool {
    guard self.code != .credentials else { return false }
    switch self.serviceCode {
    case ServiceErrorCode.topicNotFound, ServiceErrorCode.topicMetaPermission,
      ServiceErrorCode.schemaMetaPermission, ServiceErrorCode.cannotSubscribe:
      return true
    // All topics depend on the managed subscription.
    case ServiceErrorCode.tenantLicense, ServiceErrorCode.managedStopped,
      ServiceErrorCode.managedDeleted, ServiceErrorCode.managedNameNotFound,
      ServiceErrorCode.managedIDNotFound, ServiceErrorCode.managedIDInvalid:
      return false
    default: return self.status == .permissionDenied || self.status == .notFound
    }
  }

  private static func byCode(_ code: ServiceErrorCode, sentReplayID: Bool) -> Disposition? {
    switch code {
    case .serviceUnavailable, .topicUnavailable, .schemaUnavailable, .replayRepeated,
      .fetchOverflow, .internalError:
      return .retry(minimumDelay: .zero)
    case .protectionTriggered, .protectionStreamLimitTriggered, .concurrentClientLimitExceeded:
      return .retry(minimumDelay: .seconds(30))
    case .authError, .authHeadersInvalid, .authRefreshInvalid: return .reauthenticate
    // The other client may end; after it has disconnected, the service reserves the subscription
    // for a while.
    case .managedAlreadyActive: return .retry(minimumDelay: .seconds(30))
    case .managedStopped, .managedDeleted, .managedNameNotFound, .managedIDNotFound,
      .managedIDInvalid:
      return .stop
    case .tenantLicense, .topicNotFound, .topicMetaPermission, .schemaMetaPermission,
      .cannotSubscribe:
      return .stop
    case .replayIDCorrupted: return .replay
    case .replayIDValidationFailed: return sentReplayID ? .replay : .bug
    case .limitExceeded: return .quota
    case .topicEmpty, .schemaValidationFailed, .requestedEventsInvalid, .topicMismatch,
      .fetchRequestInvalid:
      return .bug
    default: return nil
    }
  }
}
