public import GRPCCore
internal import SwiftProtobuf

/// A call of the service that failed, with what the service said about it.
public struct PubSubError: Error, Sendable {
  /// What a call failed at.
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
    /// Credit was open, and neither event nor keepalive came: the connection is half-open.
    public static var idle: Self { Self(.idle) }
    /// A message that is not a protobuf message of the expected type, or whose events have no place in
    /// the stream.
    public static var malformedResponse: Self { Self(.malformedResponse) }
    /// No access token could be had, and asking again will not help.
    public static var credentials: Self { Self(.credentials) }
    /// No access token could be had for now: network or login service.
    public static var credentialsRetryable: Self { Self(.credentialsRetryable) }
  }

  /// What the call failed at.
  public var code: Code
  /// Status of the call; `.ok` for `endOfStream`, `.unauthenticated` for credentials.
  public var status: Status.Code
  /// From the `error-code` trailer, else from the message.
  public var serviceCode: ServiceErrorCode?
  /// Names the operation and its object, then what the service said.
  public var message: String
  /// To quote to the service's support.
  public var rpcID: String?
  /// The service has certainly not looked at the request, as the transport knows.
  public var isUnprocessed = false
  /// `status` is the service's own, and came without a byte of an answer before it. False for a status
  /// that the transport has concluded from something else, such as an HTTP status, and for transports
  /// that do not tell.
  public var isRefusal = false
  /// A message of the service had come before the call failed: it has looked at the request, whatever
  /// the status says.
  public var hasResponse = false
  /// What came with the status, which `message` ends with; empty for failures without one.
  package var statusMessage = ""
  /// What the transport, the login or the parser said; nil for none.
  public var cause: (any Error)?
  /// Where in the source the error was made.
  public var fileID: String, line: Int

  /// An error of a caller's own `CredentialsSource`, or of this package.
  ///
  /// - Parameters:
  ///   - code: what the call failed at.
  ///   - status: `.unauthenticated` for credentials.
  ///   - serviceCode: nil for none.
  ///   - message: names the operation; holds no secret.
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

  /// What a call ended with.
  ///
  /// - Parameter operation: what failed and on which thing, such as `Subscribe to /event/A__e`.
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
    // Messages that are not read here are read by SwiftProtobuf.
    let isMalformed =
      rpcError.cause is FetchResponseError || rpcError.cause is BinaryDecodingError
    let serviceCode =
      isMalformed
      ? nil
      : rpcError.metadata[stringValues: "error-code"].lazy
        .compactMap { ServiceErrorCode(trailer: $0) }.first
        ?? ServiceErrorCode(message: rpcError.message)
    let status = Status.Code(rpcError.code)
    // What befalls the connection befalls all that goes over it, and is said alike for all.
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

  // What a transport marks errors with. No server can send it: names of trailers begin with no colon.
  static let unprocessedKey = ":unprocessed"
  static let refusalKey = ":refusal"

  /// The service ends its messages with `rpcId: <uuid>`; the name of the trailer that repeats it
  /// is not documented, so any trailer whose name has `rpc` in it will do.
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
