internal import Bytes
internal import Checkpoint
import EventLoop
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubSource
import SalesforceAuth
import SalesforceREST
import TLSStream

/// Why a run failed, as reported to the user.
struct RunFailure: Error {
  var exitCode: ExitCode
  /// Nil if the word comes from the service.
  var reason: EndReason?
  /// One stable word for reports.
  var word: String
  /// What failed, on which object, and what to do about it.
  var message: String

  /// - Parameter code: one of the reason's codes; nil for the usual one.
  init(_ reason: EndReason, code: ExitCode? = nil, _ message: String) {
    self.exitCode = code ?? reason.codes[0]
    assert(reason.codes.contains(self.exitCode), "ExitCodes.md lists no such code of \(reason)")
    self.reason = reason
    self.word = reason.rawValue
    self.message = message
  }

  /// - Parameter word: a stable word, perhaps the service's own.
  init(word: String, code: ExitCode, _ message: String) {
    self.exitCode = code
    self.reason = EndReason(rawValue: word)
    self.word = word
    self.message = message
  }

  /// The failure for an error from any part of the run.
  init(_ error: any Error) {
    if let failure = SinkRegistry.failure(error) {
      self = failure
      return
    }
    switch error {
    case let failure as RunFailure: self = failure
    case let failure as SourceFailure: self.init(failure)
    case let error as OtherStreamError:
      self.init(
        .otherStream,
        "\(error.topic): the first change after the stored position was committed at "
          + "\(UTCTime.timestamp(milliseconds: error.committedAt)), more than an hour before the newest "
          + "exported one (\(UTCTime.timestamp(milliseconds: error.exportedAt))): this is another stream "
          + "than the one that was exported. None of its events was written. \(OrgChange.remedy). If it is the "
          + "same stream, and only the times of its events went back, continue after the last exported "
          + "event: 'checkpoint show' prints its replay ID; give it to 'pubsub-etl checkpoint set FILE "
          + "--topic \(error.topic) --replay-id'")
    case let error as CheckpointError:
      let reason: EndReason =
        switch error.code {
        case .alreadyRunning: .alreadyRunning
        case .damaged: .damagedCheckpoint
        case .mismatch: .otherCheckpoint
        case .tooLarge: .checkpointTooLarge
        default: .checkpointIO
        }
      self.init(reason, error.message)
    case let error as TopicPositionError:
      self.init(.damagedCheckpoint, error.description)
    case let error as TransformError:
      self.init(.stages, "\(error)")
    case let error as AuthError:
      let code: ExitCode =
        switch error.code {
        case .untrusted, .configuration: .configuration
        case .unavailable: .unavailable
        case .exhausted: .tryAgain
        default: .refused
        }
      self.init(.login, code: code, "\(error)")
    case let error as PubSubError:
      let isRefused = [.notFound, .permissionDenied, .unauthenticated].contains(error.status)
      self.init(isRefused ? .refused : .unavailable, error.message + error.advice())
    case let error as RESTError:
      switch error.disposition {
      case .retry, .split, .gone: self.init(.unavailable, error.message)
      case .quota: self.init(.quota, error.message)
      case .login: self.init(.login, code: .refused, error.message)
      case .describe, .unsupportedByBulk, .tooWide, .stop: self.init(.refused, error.message)
      case .configuration: self.init(.notSalesforce, error.message)
      case .bug: self.init(.internal, error.message)
      }
    case let error as EventDecodingError: self.init(.schema, code: .data, "\(error)")
    case let error as TLSError:
      self.init(.tls, code: error.code == .system ? .tryAgain : .configuration, "\(error)")
    case let error as SystemCallError:
      self.init(.system, code: error.isExhaustion ? .tryAgain : .internal, "\(error)")
    case let error as RPCError: self.init(.connection, error.message)
    default: self.init(.internal, "\(error)")
    }
  }

  private init(_ failure: SourceFailure) {
    let code: ExitCode =
      switch failure.disposition {
      case .unavailable: .unavailable
      case .refused: .refused
      case .invalidReplay: .data
      case .quota: .tryAgain
      case .bug: .internal
      case .configuration: .configuration
      }
    self.init(word: failure.reason, code: code, failure.description)
  }
}
