import GRPCCore
import Testing

@testable import HTTP2Transport

@Test(
  "A reset that says nothing about the call is reported as service unavailable",
  arguments: [HTTP2ErrorCode.refusedStream, .enhanceYourCalm, .inadequateSecurity])
func resetsThatAreRetried(code: HTTP2ErrorCode) {
  #expect(RPCError(streamResetWith: code).code == .unavailable)
}

@Suite("State machine of a stream")
struct StreamStateMachineTests {
  static let headers = [
    HeaderField(name: ":status", value: "200"),
    HeaderField(name: "content-type", value: "application/grpc+proto"),
    HeaderField(name: "x-a", value: "1"),
  ]
  static let trailers = [
    HeaderField(name: "grpc-status", value: "0"), HeaderField(name: "x-b", value: "2"),
  ]

  enum Seen: Equatable {
    case metadata(Metadata)
    case message([UInt8])
    case status(Status, Metadata)
    case failed(RPCError.Code)
  }

  /// What the application sees of one event.
  enum Event {
    case headers([HeaderField], endsStream: Bool = false)
    case data([UInt8])
    case end
    case closed
  }

  func run(_ events: [Event]) -> [Seen] {
    var machine = StreamStateMachine(maxMessageBytes: 100)
    var seen: [Seen] = []
    for event in events {
      let result: StreamStateMachine.OnEvent
      switch event {
      case .headers(let fields, let endsStream):
        result = machine.receivedHeaders(fields, endsStream: endsStream)
      case .data(let bytes):
        result = bytes.withUnsafeBytes {
          machine.receivedData($0) { seen.append(.message($0.bytes)) }
        }
      case .end: result = machine.receivedEndOfStream()
      case .closed: result = machine.closed(RPCError(code: .unavailable, message: "lost"))
      }
      switch result {
      case .none: break
      case .metadata(let metadata): seen.append(.metadata(metadata))
      case .status(let status, let metadata): seen.append(.status(status, metadata))
      case .fail(let error): seen.append(.failed(error.code))
      }
    }
    return seen
  }

  @Test("Headers, messages and trailers make a response") func response() {
    let seen = self.run([
      .headers(Self.headers), .data([0, 0, 0, 0, 1]), .data([9]),
      .headers(Self.trailers, endsStream: true),
    ])
    #expect(
      seen == [
        .metadata(["x-a": "1"]), .message([9]),
        .status(Status(code: .ok, message: ""), ["x-b": "2"]),
      ])
  }

  /// Wherever a response stops, the last thing the application sees is a status or an error.
  @Test("A response that ends early is an error at every event") func prefixes() {
    let events: [Event] = [
      .headers(Self.headers), .data([0, 0, 0, 0, 1, 1]), .data([0, 0, 0]), .data([0, 2, 1, 2]),
    ]
    for count in 0...events.count {
      for ending in [Event.end, .closed] {
        let seen = self.run(Array(events.prefix(count)) + [ending])
        guard case .failed = seen.last else {
          Issue.record("no error after \(count) events: \(seen)")
          continue
        }
      }
    }
  }

  @Test("Nothing is delivered after the end") func afterEnd() {
    let endings: [Event] = [.headers(Self.trailers, endsStream: true), .end, .closed]
    for ending in endings {
      let before = self.run([.headers(Self.headers), ending])
      let after = self.run([
        .headers(Self.headers), ending, .data([0, 0, 0, 0, 0]), .headers(Self.headers), .end,
        .closed,
      ])
      #expect(before == after)
      #expect(before.count == 2)
    }
  }

  @Test(
    "Only offered encodings are accepted",
    arguments: [
      ("gzip", true), ("deflate", true), ("identity", true), ("snappy", false), ("", false),
    ])
  func encodings(encoding: String, isAccepted: Bool) {
    let seen = self.run([
      .headers(Self.headers + [HeaderField(name: "grpc-encoding", value: encoding)])
    ])
    #expect(seen == [isAccepted ? .metadata(["x-a": "1"]) : .failed(.internalError)])
  }

  @Test("A compressed message without a named encoding is an error") func missingEncoding() {
    let compressed: Event = .data([1, 0, 0, 0, 1, 9])
    #expect(self.run([.headers(Self.headers), compressed]).last == .failed(.internalError))
    let named = Self.headers + [HeaderField(name: "grpc-encoding", value: "gzip")]
    #expect(self.run([.headers(named), compressed]).last == .message([9]))
    let identity = Self.headers + [HeaderField(name: "grpc-encoding", value: "identity")]
    #expect(self.run([.headers(identity), compressed]).last == .failed(.internalError))
  }

  @Test("Informational headers are skipped") func informational() {
    let seen = self.run([
      .headers([HeaderField(name: ":status", value: "103")]), .headers(Self.headers),
    ])
    #expect(seen == [.metadata(["x-a": "1"])])
  }

  @Test("Headers in the middle of a body are an error") func headersInBody() {
    let seen = self.run([.headers(Self.headers), .headers(Self.trailers)])
    #expect(seen.last == .failed(.internalError))
  }

  @Test(
    "Every form of the gRPC content type is accepted",
    arguments: [
      "application/grpc", "application/grpc+json", "application/grpc;charset=utf-8",
      "Application/GRPC",
    ])
  func contentTypes(type: String) {
    let seen = self.run([
      .headers([
        HeaderField(name: ":status", value: "200"), HeaderField(name: "content-type", value: type),
      ])
    ])
    #expect(seen == [.metadata([:])])
  }

  @Test(
    "Other content types are refused",
    arguments: ["", "text/html", "application/grpc-web", "application/grpcx"])
  func otherContentTypes(type: String) {
    let seen = self.run([
      .headers([
        HeaderField(name: ":status", value: "200"), HeaderField(name: "content-type", value: type),
      ])
    ])
    #expect(seen == [.failed(.unknown)])
  }

  @Test("An undefined status code becomes UNKNOWN") func unknownStatus() {
    for value in ["17", "-1", "x", "", "99999999999999999999"] {
      let status = Status(fields: [
        HeaderField(name: "grpc-status", value: value),
        HeaderField(name: "grpc-message", value: "m"),
      ])
      #expect(status == Status(code: .unknown, message: "m"))
    }
  }

  @Test(
    "Percent-encoded status messages are decoded",
    arguments: [
      ("plain", "plain"), ("a%20b", "a b"), ("%e2%82%AC", "€"), ("100%", "100%"), ("%", "%"),
      ("%2", "%2"), ("%zz", "%zz"), ("%ff", "\u{FFFD}"), ("", ""),
    ])
  func statusMessages(encoded: String, decoded: String) {
    #expect(Status.percentDecoded(encoded) == decoded)
  }

  @Test("Metadata that cannot be sent is refused") func badMetadata() throws {
    for metadata: Metadata in [["a b": "1"], ["": "1"], ["x": "größe"], ["x": "a\nb"]] {
      let error = #expect(throws: RPCError.self) { try metadata.requestFields() }
      #expect(error?.code == .invalidArgument)
    }
    let fields = try Metadata([("X-Upper", .string("1")), ("te", .string("gzip"))]).requestFields()
    #expect(fields == [HeaderField(name: "x-upper", value: "1")])
    let binary: Metadata = ["x-bin": [0, 255]]
    #expect(try binary.requestFields().first?.value.hasPrefix("AP8") == true)
  }
}
