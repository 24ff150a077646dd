internal import SimulatedOrg

/// One RPC on one stream. Confined to the event loop.
protocol Call: AnyObject {
  /// A complete request message.
  func received(_ message: [UInt8])
  /// The client sends nothing more.
  func inputEnded()
  /// The stream is gone.
  func closed()
  /// Time has passed, perhaps a lot of it.
  func tick(at now: Int64)
  /// When `tick` will have something to do, unless something else happens before; nil for never.
  var due: Int64? { get }
  /// Events may have been published.
  func eventsArrived()
}

/// What a call may do to its stream.
struct CallContext {
  let stream: Int32
  /// For messages and log lines; not secret.
  let rpcID: String
  let method: String
  let client: String
  /// Refers back to the call; `ServerConnection.close` parts them.
  let connection: ServerConnection
  unowned let org: Org

  var now: Int64 { self.org.clock.now }

  static let responseHeaders = [
    HTTP2Header(":status", "200"), HTTP2Header("content-type", "application/grpc"),
    HTTP2Header("grpc-accept-encoding", "identity"),
  ]

  static func okTrailers() -> [HTTP2Header] { [HTTP2Header("grpc-status", "0")] }

  /// The code is in a trailer, the RPC ID at the end of the message
  /// (ServiceErrors.md#where-the-information-is).
  func trailers(of fault: ServiceFault) -> [HTTP2Header] {
    var trailers = [HTTP2Header("grpc-status", String(fault.status.rawValue))]
    if fault.status != .ok {
      trailers.append(
        HTTP2Header(
          "grpc-message", Self.percentEncoded("\(fault.message) rpcId: \(self.rpcID)")))
    }
    if let code = fault.code {
      trailers.append(HTTP2Header("error-code", "sfdc.platform.eventbus.grpc.\(code)"))
    }
    trailers.append(HTTP2Header("rpc-id", self.rpcID))
    return trailers
  }

  /// gRPC over HTTP/2, "Status-Message": percent-encoding of all but printable ASCII, and of `%`.
  static func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "%") {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Messages that are waiting to be sent, and the end of the stream.
final class ResponseQueue: ResponseSource {
  private var bytes: [UInt8] = []
  private var end: ResponseStep = .more

  var isEnded: Bool {
    if case .more = self.end { false } else { true }
  }

  var byteCount: Int { self.bytes.count }

  func send(_ message: some Collection<UInt8>) {
    MessageDeframer.frame(message, to: &self.bytes)
  }

  func finish(_ end: ResponseStep) {
    self.end = end
  }

  func fill(_ bytes: inout [UInt8]) -> ResponseStep {
    bytes += self.bytes
    self.bytes.removeAll()
    return self.end
  }
}
