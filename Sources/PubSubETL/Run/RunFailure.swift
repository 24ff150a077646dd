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
  /// One stable word for reports.
  var reason: String
  /// What failed, on which object, and what to do about it.
  var message: String

  init(_ exitCode: ExitCode, reason: String, _ message: String) {
    self.exitCode = exitCode
    self.reason = reason
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
        .data, reason: "other_stream",
        "\(error.topic): the first change after the stored position was committed at "
          + "\(UTCTime.timestamp(milliseconds: error.committedAt)), more than an hour before the newest "
          + "exported one (\(UTCTime.timestamp(milliseconds: error.exportedAt))): this is another stream "
          + "than the one that was exported. None of its events was written. \(OrgChange.remedy). If it is the "
          + "same stream, and only the times of its events went back, continue after the last exported "
          + "event: 'checkpoint show' prints its replay ID; give it to 'pubsub-etl checkpoint set FILE "
          + "--topic \(error.topic) --replay-id'")
    case let error as CheckpointError:
      let (code, reason): (ExitCode, String) =
        switch error.code {
        case .alreadyRunning: (.tryAgain, "already_running")
        case .damaged: (.data, "damaged_checkpoint")
        case .mismatch: (.configuration, "other_checkpoint")
        case .tooLarge: (.data, "checkpoint_too_large")
        default: (.output, "checkpoint_io")
        }
      self.init(code, reason: reason, error.message)
    case let error as TopicPositionError:
      self.init(.data, reason: "damaged_checkpoint", error.description)
    case let error as TransformError:
      self.init(.configuration, reason: "stages", "\(error)")
    case let error as AuthError:
      let code: ExitCode =
        switch error.code {
        case .untrusted, .configuration: .configuration
        case .unavailable: .unavailable
        case .exhausted: .tryAgain
        default: .refused
        }
      self.init(code, reason: "login", "\(error)")
    case let error as PubSubError:
      let isRefused = [.notFound, .permissionDenied, .unauthenticated].contains(error.status)
      self.init(
        isRefused ? .refused : .unavailable, reason: isRefused ? "refused" : "unavailable",
        error.message + error.advice())
    case let error as RESTError:
      let (code, reason): (ExitCode, String) =
        switch error.disposition {
        case .retry, .split, .gone: (.unavailable, "unavailable")
        case .quota: (.tryAgain, "quota")
        case .login: (.refused, "login")
        case .describe, .unsupportedByBulk, .tooWide, .stop: (.refused, "refused")
        case .configuration: (.configuration, "not_salesforce")
        case .bug: (.internal, "internal")
        }
      self.init(code, reason: reason, error.message)
    case let error as EventDecodingError: self.init(.data, reason: "schema", "\(error)")
    case let error as TLSError:
      self.init(error.code == .system ? .tryAgain : .configuration, reason: "tls", "\(error)")
    case let error as SystemCallError:
      self.init(error.isExhaustion ? .tryAgain : .internal, reason: "system", "\(error)")
    case let error as RPCError: self.init(.unavailable, reason: "connection", error.message)
    default: self.init(.internal, reason: "internal", "\(error)")
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
    self.init(code, reason: failure.reason, failure.description)
  }
}
