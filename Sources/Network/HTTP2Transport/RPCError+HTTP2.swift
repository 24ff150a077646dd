internal import Bytes
internal import EventLoop
internal import GRPCCore
internal import TLSStream

extension RPCError {
  /// The server reset the stream before it had sent a status (gRPC over HTTP/2, "Errors").
  /// - Parameter code: of RST_STREAM (RFC 9113 section 7).
  init(streamResetWith code: HTTP2ErrorCode) {
    let mapped: RPCError.Code =
      switch code {
      case .noError, .protocolError, .internalError, .flowControlError, .settingsTimeout,
        .frameSizeError, .compressionError, .connectError:
        .internalError
      // The specification makes RESOURCE_EXHAUSTED and PERMISSION_DENIED of the last two, which callers
      // would take for a response that is too large and for a right that is missing. A server or a proxy
      // that resets a stream says neither: it is asked again later.
      case .refusedStream, .enhanceYourCalm, .inadequateSecurity: .unavailable
      case .cancel: .cancelled
      default: .unknown
      }
    self.init(
      code: mapped, message: "The stream was reset with \(code) before the server sent a status.")
  }

  /// No connection came about. An identity error of TLS is found again as `cause`.
  static func connectFailed(_ endpoint: String, _ error: TLSError) -> RPCError {
    RPCError(
      code: .unavailable, message: "cannot connect to \(endpoint): \(error.message)", cause: error)
  }

  /// The connection ended under a stream that was open.
  static func connectionLost(_ endpoint: String, _ error: TLSError) -> RPCError {
    RPCError(
      code: .unavailable, message: "The connection to \(endpoint) was lost: \(error.message)",
      cause: error)
  }

  static func cancelled() -> RPCError {
    RPCError(code: .cancelled, message: "The RPC was cancelled.", cause: CancellationError())
  }

  static func shutDown() -> RPCError {
    RPCError(code: .failedPrecondition, message: "The transport is shutting down.")
  }
}

extension TLSError {
  /// Why a connection ends, when `error` is what ends it.
  init(endingConnection error: any Error) {
    switch error {
    case let error as TLSError: self = error
    case let error as HTTP2SessionError: self.init(.connectionLost, error.message)
    case let error as SystemCallError: self.init(.system, "\(error)")
    default: self.init(.connectionLost, "\(error)")
    }
  }
}

extension Status {
  /// Reads `grpc-status` and `grpc-message`; nil when the first is missing.
  init?(fields: [HeaderField]) {
    guard let text = fields.first(where: { $0.name == "grpc-status" })?.value else { return nil }
    let encoded = fields.first { $0.name == "grpc-message" }?.value ?? ""
    let message = Self.percentDecoded(encoded)
    // A number that the specification does not name counts as unknown, as it prescribes.
    guard let number = Int(text), let code = Code(rawValue: number) else {
      self.init(code: .unknown, message: message.isEmpty ? "grpc-status \(text)" : message)
      return
    }
    self.init(code: code, message: message)
  }

  /// Undoes the percent-encoding of a status message. What is not a valid escape stays as it is:
  /// the specification forbids to drop or refuse a message because of one.
  static func percentDecoded(_ text: String) -> String {
    String(decoding: PercentEncoding.decoded(text).bytes, as: UTF8.self)
  }
}
