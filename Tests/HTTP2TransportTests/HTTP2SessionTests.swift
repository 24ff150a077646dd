import Testing

@testable import HTTP2Transport

/// The session alone: bytes in, events and bytes out.
@Suite("HTTP/2 session")
struct HTTP2SessionTests {
  final class Body: RequestBody {
    var bytes: [UInt8] = []
    var isEnd = false

    func read(into buffer: UnsafeMutableRawBufferPointer) -> RequestBodyRead {
      let count = min(buffer.count, self.bytes.count)
      guard count > 0 || self.isEnd else { return .nothingYet }
      buffer.copyBytes(from: self.bytes.prefix(count))
      self.bytes.removeFirst(count)
      return .bytes(count, isEnd: self.isEnd && self.bytes.isEmpty)
    }
  }

  static let settings = HTTP2Session.Settings(
    initialWindowBytes: 65_536, connectionWindowBytes: 1 << 20, maxHeaderListBytes: 4096)
  static let fields = [
    HeaderField(name: ":method", value: "POST"), HeaderField(name: ":scheme", value: "http"),
    HeaderField(name: ":path", value: "/s/m"), HeaderField(name: ":authority", value: "h"),
  ]

  /// RFC 9113 section 6.
  enum FrameType: UInt8 {
    case data = 0
    case headers = 1
    case resetStream = 3
    case settings = 4
    case goAway = 7
    case windowUpdate = 8
  }

  struct FrameFlags: OptionSet {
    var rawValue: UInt8
    static let endStream = Self(rawValue: 1)
    static let endHeaders = Self(rawValue: 4)
  }

  static func frame(
    _ type: FrameType, _ flags: FrameFlags, _ stream: UInt8, _ payload: [UInt8]
  ) -> [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)]
      + [type.rawValue, flags.rawValue, 0, 0, 0, stream] + payload
  }

  /// SETTINGS, then headers, two bytes of data and trailers on stream 1, then GOAWAY.
  static let response: [UInt8] = {
    let status = Array("grpc-status".utf8)
    return Self.frame(.settings, [], 0, [])
      + Self.frame(.headers, .endHeaders, 1, [0x88])  // :status 200 of the static table
      + Self.frame(.data, [], 1, [7, 8])
      + Self.frame(
        .headers, [.endHeaders, .endStream], 1, [0, UInt8(status.count)] + status + [1, 0x30])
      + Self.frame(.goAway, [], 0, [0, 0, 0, 1, 0, 0, 0, 11] + Array("calm".utf8))
  }()

  static func summary(_ event: HTTP2Event) -> String? {
    switch event {
    case .headers(let stream, let fields, let endsStream):
      "headers \(stream) \(fields.map { "\($0.name)=\($0.value)" }) \(endsStream)"
    case .data(let stream, let bytes): "data \(stream) \(Array(bytes))"
    case .endOfStream(let stream): "end \(stream)"
    case .streamClosed(let stream, let code): "closed \(stream) \(code.rawValue)"
    case .requestSent: nil
    case .requestNotSent(let stream): "not sent \(stream)"
    case .headersTooLong(let stream): "too long \(stream)"
    case .settings: "settings"
    case .pingAcknowledged: "ping"
    case .goAway(let code, let text): "goaway \(code.rawValue) \(text)"
    }
  }

  static let expected = [
    "settings", #"headers 1 [":status=200"] false"#, "data 1 [7, 8]",
    #"headers 1 ["grpc-status=0"] true"#, "closed 1 0", "goaway 11 calm",
  ]

  func session(_ body: Body) throws -> HTTP2Session {
    let session = try HTTP2Session(settings: Self.settings)
    let stream = try session.submitRequest(Self.fields, body: body)
    #expect(stream == 1)
    _ = try self.output(session)
    return session
  }

  func output(_ session: HTTP2Session) throws -> [UInt8] {
    var output: [UInt8] = []
    try session.send(into: &output, limit: .max)
    return output
  }

  /// Feeds `bytes` in pieces; data events are joined, since a piece may end inside a frame.
  func receive(_ session: HTTP2Session, _ bytes: [UInt8], by size: Int) throws -> [String] {
    var seen: [String] = []
    var data: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      try Array(bytes[start..<min(start + size, bytes.count)]).withUnsafeBytes { piece in
        try session.receive(piece)
        for event in session.takeEvents() {
          if case .data(_, let bytes) = event {
            data += bytes
            if data.count < 2 { continue }
            seen.append("data 1 \(data)")
          } else if let summary = Self.summary(event) {
            seen.append(summary)
          }
        }
      }
    }
    return seen
  }

  @Test("A response is reported the same way, however its bytes are split") func fragments() throws
  {
    for size in 1...Self.response.count {
      let body = Body()
      body.isEnd = true
      let session = try self.session(body)
      #expect(try self.receive(session, Self.response, by: size) == Self.expected)
    }
  }

  @Test("A truncated response gives a prefix of the events") func truncation() throws {
    for end in 0..<Self.response.count {
      let body = Body()
      body.isEnd = true
      let seen = try self.receive(try self.session(body), Array(Self.response[..<end]), by: 1000)
      #expect(seen.count < Self.expected.count)
      #expect(seen == Array(Self.expected.prefix(seen.count)) || seen.last == "data 1 [7]")
    }
  }

  @Test("Damaged bytes can end only the session") func damage() throws {
    for index in 0..<Self.response.count {
      for value: UInt8 in [0, 1, 0x7f, 0xff] {
        var bytes = Self.response
        bytes[index] = value
        let session = try self.session(Body())
        _ = try? self.receive(session, bytes, by: 1000)
        _ = try? self.output(session)
      }
    }
  }

  @Test("A request body is sent as it arrives") func body() throws {
    let body = Body()
    let session = try self.session(body)
    #expect(try self.output(session).isEmpty)
    body.bytes = [1, 2, 3]
    session.resume(1)
    #expect(try self.output(session) == Self.frame(.data, [], 1, [1, 2, 3]))
    body.isEnd = true
    session.resume(1)
    #expect(try self.output(session) == Self.frame(.data, .endStream, 1, []))
  }

  @Test("A reset stream takes no more of its body") func reset() throws {
    let body = Body()
    let session = try self.session(body)
    try session.reset(1, errorCode: .cancel)
    #expect(try self.output(session) == Self.frame(.resetStream, [], 1, [0, 0, 0, 8]))
    #expect(session.takeEvents().compactMap(Self.summary) == ["closed 1 8"])
  }

  @Test("A request after GOAWAY is reported as not sent") func afterGoaway() throws {
    let session = try self.session(Body())
    _ = try self.receive(session, Self.response, by: 1000)
    let stream = try session.submitRequest(Self.fields, body: Body())
    _ = try self.output(session)
    #expect(session.takeEvents().compactMap(Self.summary).contains("not sent \(stream)"))
  }

  @Test("Headers above the limit are reported") func headerLimit() throws {
    let session = try self.session(Body())
    let name = [UInt8](repeating: UInt8(ascii: "a"), count: 100)
    let field: [UInt8] = [0, 100] + name + [100] + name
    let block: [UInt8] = [0x88] + Array(repeating: field, count: 30).joined()
    let bytes = Self.frame(.settings, [], 0, []) + Self.frame(.headers, .endHeaders, 1, block)
    #expect(try self.receive(session, bytes, by: 100_000).contains("too long 1"))
  }

  @Test("Window updates are sent only on request") func windowUpdates() throws {
    let session = try self.session(Body())
    _ = try self.receive(session, Self.frame(.settings, [], 0, []), by: 1000)
    _ = try self.output(session)
    let data = [UInt8](repeating: 0, count: 16_384)
    _ = try self.receive(session, Self.frame(.headers, .endHeaders, 1, [0x88]), by: 1000)
    for _ in 0..<3 {
      _ = try self.receive(session, Self.frame(.data, [], 1, data), by: 100_000)
      #expect(try self.output(session).isEmpty)
    }
    try session.allow(40_000, on: 1)
    #expect(try self.output(session) == Self.frame(.windowUpdate, [], 1, [0, 0, 0x9c, 0x40]))
  }
}
