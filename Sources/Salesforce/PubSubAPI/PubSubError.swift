public import GRPCCore
internal import SwiftProtobuf

/// A failed call of the service, with the service's message.
public struct PubSubError: Error, Sendable {
  /// How a call failed.
  public struct Code: Hashable, Sendable {
    private enum Value {
      case service, endOfStream, idle, malformedResponse, credentials, credentialsRetryable
    }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The service or the transport ended the call with a status: see `status`, `serviceCode`.
    public static var service: Self { Self(.service) }
    /// The service ended a subscription with status OK. Normal for long-lived calls.
    public static var endOfStream: Self { Self(.endOfStream) }
    /// Credit was open, but neither an event nor a keepalive came: the connection is half-open.
    public static var idle: Self { Self(.idle) }
    /// A message is not a protobuf message of the expected type, or its events have no place in the
    /// stream.
    public static var malformedResponse: Self { Self(.malformedResponse) }
    /// No access token could be obtained, and retrying will not help.
    public static var credentials: Self { Self(.credentials) }
    /// No access token could be obtained for now, because of the network or the login service.
    public static var credentialsRetryable: Self { Self(.credentialsRetryable) }
  }

  /// How the call failed.
  public var code: Code
  /// The status of the call; `.ok` for `endOfStream`, `.unauthenticated` for credentials.
  public var status: Status.Code
  /// From the `error-code` trailer, otherwise from the message.
  public var serviceCode: ServiceErrorCode?
  /// The operation and its object, then the service's message.
  public var message: String
  /// To quote to the service's support.
  public var rpcID: String?
  /// According to the transport, the service has certainly not examined the request.
  public var isUnprocessed = false
  /// `status` is the service's own, and came before any byte of an answer. False for a status that
  /// the transport has derived from something else, such as an HTTP status, and for transports that
  /// do not say.
  public var isRefusal = false
  /// A message had arrived before the call failed, so the service has examined the request,
  /// whatever the status says.
  public var hasResponse = false
  /// The message that came with the status, at the end of `message`; empty for failures without
  /// one.
  package var statusMessage = ""
  /// The error of the transport, login or parser; nil if there is none.
  public var cause: (any Error)?
  /// Where in the source the error was created.
  public var fileID: String, line: Int

  /// An error of a caller's own `CredentialsSource`, or of this package.
  ///
  /// - Parameters:
  ///   - code: how the call failed.
  ///   - status: `.unauthenticated` for credentials.
  ///   - serviceCode: nil for none.
  ///   - message: names the operation; contains no secret.
  ///   - rpcID: nil for none.
  ///   - cause: nil for none.
  ///   - fileID: of the source.
  ///   - line: of the source.
  public init(
    _ code: Code, status: Status.Code, serviceCode: ServiceErrorCode? = nil, _ message: String,
    rpcID: String? = nil, cause: (any Error)? = nil, fileID: String = #fileID, line: Int = #line
  ) {
    self.code = code
    self.status = status
    self.serviceCode = serviceCode
    self.message = message
    self.rpcID = rpcID
    self.cause = cause
    self.fileID = fileID
    self.line = line
  }

  /// The error with which a call ended.
  ///
  /// - Parameter operation: what failed, on which object, such as `Subscribe to /event/A__e`.
  public init(
    _ error: any Error, operation: String, fileID: String = #fileID, line: Int = #line
  ) {
    if let error = error as? PubSubError {
      self = error
      return
    }
    guard let rpcError = error as? RPCError else {
      self.init(
        .service, status: .unknown, "\(operation): \(error)", cause: error, fileID: fileID,
        line: line)
      return
    }
    // SwiftProtobuf reads the messages that are not parsed here.
    let isMalformed =
      rpcError.cause is FetchResponseError || rpcError.cause is BinaryDecodingError
    let serviceCode =
      isMalformed
      ? nil
      : rpcError.metadata[stringValues: "error-code"].lazy
        .compactMap { ServiceErrorCode(trailer: $0) }.first
        ?? ServiceErrorCode(message: rpcError.message)
    let status = Status.Code(rpcError.code)
    // A connection failure affects all calls on the connection, and is reported in the same words
    // for all.
    let isOfConnection = status == .unavailable && rpcError.cause != nil && !isMalformed
    self.init(
      isMalformed ? .malformedResponse : .service, status: status, serviceCode: serviceCode,
      isOfConnection
        ? rpcError.message
        : "\(operation): \(status) \(serviceCode.map { "(\($0.rawValue)) " } ?? "")"
          + rpcError.message,
      rpcID: Self.rpcID(in: rpcError), cause: rpcError.cause, fileID: fileID, line: line)
    self.statusMessage = rpcError.message
    self.isUnprocessed = rpcError.has(mark: Self.unprocessedKey)
    self.isRefusal = rpcError.has(mark: Self.refusalKey)
  }

  // The key with which a transport marks errors. No server can send it, because trailer names do
  // not begin with a colon.
  static let unprocessedKey = ":unprocessed"
  static let refusalKey = ":refusal"

  /// The service ends its messages with `rpcId: <uuid>`; the name of the trailer that repeats it is
  /// not documented, so any trailer whose name contains `rpc` is accepted.
  private static func rpcID(in error: RPCError) -> String? {
    if let label = error.message.firstRange(of: "rpcId: ") {
      let id = error.message[label.upperBound...].prefix { !$0.isWhitespace }
      if !id.isEmpty { return String(id) }
    }
    for (key, value) in error.metadata where key.contains("rpc") && !key.hasSuffix("-bin") {
      if case .string(let text) = value { return text }
    }
    return nil
  }
}

extension RPCError {
  func has(mark: String) -> Bool { self.metadata[stringValues: mark].contains { _ in true } }
}

extension PubSubError: CustomStringConvertible {
  public var description: String { self.message }
}
