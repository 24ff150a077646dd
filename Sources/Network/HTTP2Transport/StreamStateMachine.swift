internal import GRPCCore

/// A part of a response, messages as they came in: they are inflated one at a time, when the
/// application takes them, so that what is unread takes no more memory than its windows.
enum ResponsePart {
  case metadata(Metadata)
  case message(ReceivedMessage)
  case status(Status, Metadata)
}

/// What the response of one RPC has brought so far (gRPC over HTTP/2, "Responses"). No I/O.
///
/// A response is headers, messages, trailers; or trailers alone. Whatever else ends the stream is
/// an error: a stream without a status never looks complete. Events after the end are ignored.
struct StreamStateMachine {
  private enum State {
    case awaitingHeaders
    case receivingMessages
    case finished
  }

  enum OnEvent {
    /// Nothing for the application.
    case none
    /// Headers: the first part of the response.
    case metadata(Metadata)
    /// The last part of the response.
    case status(Status, Metadata)
    /// The response is broken off; the stream is to be reset if it is still open.
    case fail(RPCError)
  }

  private var state = State.awaitingHeaders
  private var deframer: MessageDeframer

  init(maxMessageBytes: Int) {
    self.deframer = MessageDeframer(maxMessageBytes: maxMessageBytes)
  }

  /// Whether the server has shown that it works on the request.
  var hasResponded: Bool {
    if case .awaitingHeaders = self.state { false } else { true }
  }

  var isFinished: Bool {
    if case .finished = self.state { true } else { false }
  }

  /// A block of header fields: informational, headers or trailers.
  mutating func receivedHeaders(_ fields: [HeaderField], endsStream: Bool) -> OnEvent {
    switch self.state {
    case .finished: return .none
    case .receivingMessages: return self.receivedTrailers(fields, endsStream: endsStream)
    case .awaitingHeaders: break
    }
    let httpStatus = fields.first { $0.name == ":status" }.flatMap { Int($0.value) } ?? 0
    if (100..<200).contains(httpStatus), !endsStream { return .none }
    if endsStream, let status = Status(fields: fields) { return self.ended(status, fields) }
    guard httpStatus == 200 else {
      return self.fail(
        RPCError.Code(Status(httpStatusCode: httpStatus).code) ?? .unknown,
        "The server answered with HTTP status \(httpStatus) and no gRPC status.")
    }
    let contentType = fields.first { $0.name == "content-type" }?.value ?? ""
    guard Self.isGRPC(contentType) else {
      return self.fail(
        .unknown,
        "The server answered with content type '\(contentType.prefix(100))', which is not gRPC.")
    }
    if endsStream { return self.fail(.unknown, "The server sent no gRPC status.") }
    if let encoding = fields.first(where: { $0.name == "grpc-encoding" })?.value,
      encoding != "identity"
    {
      guard MessageInflater.accepts(encoding) else {
        return self.fail(
          .internalError,
          "The server compresses with '\(encoding.prefix(100))', which was not offered.")
      }
      self.deframer.acceptsCompressed = true
    }
    self.state = .receivingMessages
    return .metadata(Metadata(response: fields))
  }

  /// Bytes of the body; `deliver` gets the messages they complete.
  mutating func receivedData(
    _ bytes: UnsafeRawBufferPointer, _ deliver: (consuming ReceivedMessage) -> Void
  ) -> OnEvent {
    switch self.state {
    case .finished: return .none
    case .awaitingHeaders: return self.fail(.internalError, "The server sent data before headers.")
    case .receivingMessages:
      do {
        try self.deframer.receive(bytes, deliver)
        return .none
      } catch {
        self.state = .finished
        return .fail(error)
      }
    }
  }

  /// The server ended its direction with a frame that carried no trailers.
  mutating func receivedEndOfStream() -> OnEvent {
    guard !self.isFinished else { return .none }
    return self.fail(
      .internalError,
      self.deframer.isBetweenMessages
        ? "The server ended the stream without a status."
        : "The server ended the stream inside a message, without a status.")
  }

  /// The stream is gone without having been ended by the server; `error` says why.
  mutating func closed(_ error: RPCError) -> OnEvent {
    guard !self.isFinished else { return .none }
    self.state = .finished
    return .fail(error)
  }

  private mutating func receivedTrailers(_ fields: [HeaderField], endsStream: Bool) -> OnEvent {
    guard endsStream else {
      return self.fail(.internalError, "The server sent headers in the middle of the response.")
    }
    guard let status = Status(fields: fields) else {
      return self.fail(.unknown, "The server sent trailers without a gRPC status.")
    }
    guard status.code != .ok || self.deframer.isBetweenMessages else {
      return self.fail(.internalError, "The server reported success inside a message.")
    }
    return self.ended(status, fields)
  }

  private mutating func ended(_ status: Status, _ fields: [HeaderField]) -> OnEvent {
    self.state = .finished
    let trailers = Metadata(response: fields)
    let isRefusal = status.code != .ok && !self.deframer.hasReceivedBytes
    return .status(status, isRefusal ? RPCError.marking(refusal: trailers) : trailers)
  }

  private mutating func fail(_ code: RPCError.Code, _ message: String) -> OnEvent {
    self.state = .finished
    return .fail(RPCError(code: code, message: message))
  }

  /// `application/grpc`, with a format (`+proto`) or parameters.
  private static func isGRPC(_ contentType: String) -> Bool {
    let type = "application/grpc"
    guard contentType.lowercased().hasPrefix(type) else { return false }
    guard let next = contentType.utf8.dropFirst(type.utf8.count).first else { return true }
    return next == UInt8(ascii: "+") || next == UInt8(ascii: ";")
  }
}
