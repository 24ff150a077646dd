internal import CNGHTTP2
internal import Glibc
internal import SimulatedOrg

/// Where the messages of a response come from. Asked whenever the transport could send more.
protocol ResponseSource: AnyObject {
  /// Appends framed messages to `bytes`, or nothing if there are none now, and says what comes next.
  func fill(_ bytes: inout [UInt8]) -> ResponseStep
}

enum ResponseStep {
  /// Ask again after `HTTP2ServerSession.resume`, or when what was appended has been sent.
  case more
  /// End the stream with these trailers after what was appended.
  case end(trailers: [HTTP2Header])
  /// End the stream without trailers, which a correct server never does.
  case endWithoutTrailers
}

struct HTTP2Header: Equatable, Sendable {
  var name: String
  var value: String

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// One server side of HTTP/2 on libnghttp2: bytes in, events out, and bytes to send.
///
/// The library's callbacks only append to the event list and never call back into it. Confined to the event
/// loop. Source: nghttp2.h of 1.52, RFC 9113.
final class HTTP2ServerSession {
  enum Event {
    case request(stream: Int32, headers: [HTTP2Header])
    case data(stream: Int32, bytes: [UInt8])
    case endOfInput(stream: Int32)
    case closed(stream: Int32)
  }

  private final class Output {
    let source: any ResponseSource
    var bytes: [UInt8] = []
    var sent = 0
    var last: ResponseStep = .more

    init(source: any ResponseSource) { self.source = source }
  }

  private var session: OpaquePointer?  // nghttp2_session *
  private var events: [Event] = []
  private var headers: [Int32: [HTTP2Header]] = [:]
  private var outputs: [Int32: Output] = [:]
  /// Streams whose last frame has just been sent.
  private var ended: [Int32] = []

  init(maxConcurrentStreams: UInt32) throws {
    var callbacks: OpaquePointer?  // nghttp2_session_callbacks *
    guard nghttp2_session_callbacks_new(&callbacks) == 0 else {
      throw SimulatorError(.system, "nghttp2_session_callbacks_new: out of memory")
    }
    defer { nghttp2_session_callbacks_del(callbacks) }
    Self.setCallbacks(callbacks)
    var session: OpaquePointer?
    // Unretained: deinit deletes the session, so it never outlives this object.
    let pointer = Unmanaged.passUnretained(self).toOpaque()
    guard nghttp2_session_server_new(&session, callbacks, pointer) == 0 else {
      throw SimulatorError(.system, "nghttp2_session_server_new: out of memory")
    }
    self.session = session
    let settings = [
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
        value: maxConcurrentStreams),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: 4 << 20),
    ]
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    nghttp2_session_set_local_window_size(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, 16 << 20)
  }

  deinit { nghttp2_session_del(self.session) }

  /// Whether the connection still has a purpose; false after an error of the peer and its GOAWAY.
  var isAlive: Bool {
    nghttp2_session_want_read(self.session) != 0 || nghttp2_session_want_write(self.session) != 0
  }

  /// Nil: the bytes are not HTTP/2.
  func receive(_ bytes: UnsafeRawBufferPointer) -> [Event]? {
    let count = nghttp2_session_mem_recv(
      self.session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
    defer { self.events.removeAll() }
    return count < 0 ? nil : self.events
  }

  /// Appends what is to be sent until `bytes` has `limit` or nothing is left.
  func send(into bytes: inout [UInt8], limit: Int) -> [Event] {
    while bytes.count < limit {
      var data: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(self.session, &data)
      if count > 0, let data {
        bytes.append(contentsOf: UnsafeBufferPointer(start: data, count: count))
      }
      // the library reports a frame as sent in the call after the one that gave it out
      if !self.resetEnded(), count <= 0 { break }
    }
    // sending the last frame of a stream closes it
    defer { self.events.removeAll() }
    return self.events
  }

  /// A response that ended before the request is followed by RST_STREAM with NO_ERROR, as RFC 9113 section 8.1
  /// allows: otherwise the stream stays open until the client ends its side.
  /// Returns whether there is something new to send.
  private func resetEnded() -> Bool {
    if self.ended.isEmpty { return false }
    for stream in self.ended
    where nghttp2_session_get_stream_remote_close(self.session, stream) == 0 {
      self.reset(stream, code: UInt32(NGHTTP2_NO_ERROR.rawValue))
    }
    self.ended.removeAll()
    return true
  }

  /// Headers, then the messages of `source`, then trailers.
  func respond(_ stream: Int32, headers: [HTTP2Header], source: any ResponseSource) {
    self.outputs[stream] = Output(source: source)
    var provider = nghttp2_data_provider()
    provider.read_callback = { _, stream, buffer, length, flags, _, user in
      guard let user, let buffer, let flags else {
        return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
      }
      let this = Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
      return this.read(
        stream, into: UnsafeMutableRawBufferPointer(start: buffer, count: length), flags)
    }
    Self.withNameValues(headers) {
      _ = nghttp2_submit_response(self.session, stream, $0, $1, &provider)
    }
  }

  /// A response of headers only.
  func respond(_ stream: Int32, headers: [HTTP2Header]) {
    Self.withNameValues(headers) {
      _ = nghttp2_submit_response(self.session, stream, $0, $1, nil)
    }
  }

  /// The source of the stream has something to say again.
  func resume(_ stream: Int32) {
    // fails where nothing was deferred, which is as good
    nghttp2_session_resume_data(self.session, stream)
  }

  /// Ends the stream with these bytes and without trailers, in place of what its source would say.
  func interrupt(_ stream: Int32, bytes: [UInt8]) {
    guard let output = self.outputs[stream] else {
      self.reset(stream, code: UInt32(NGHTTP2_INTERNAL_ERROR.rawValue))
      return
    }
    output.bytes += bytes
    output.last = .endWithoutTrailers
    self.resume(stream)
  }

  /// Lets go of what the responses come from; nothing can be sent after it.
  func removeSources() {
    self.outputs.removeAll()
  }

  func reset(_ stream: Int32, code: UInt32) {
    nghttp2_submit_rst_stream(self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
  }

  /// No new streams; those that are open continue.
  func goAway(code: UInt32 = 0) {
    nghttp2_submit_goaway(
      self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue),
      nghttp2_session_get_last_proc_stream_id(self.session), code, nil, 0)
  }

  private func read(
    _ stream: Int32, into buffer: UnsafeMutableRawBufferPointer,
    _ flags: UnsafeMutablePointer<UInt32>
  ) -> Int {
    guard let output = self.outputs[stream] else {
      return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
    if output.sent == output.bytes.count, case .more = output.last {
      output.bytes.removeAll(keepingCapacity: true)
      output.sent = 0
      output.last = output.source.fill(&output.bytes)
    }
    let count = min(buffer.count, output.bytes.count - output.sent)
    if count > 0 {
      output.bytes.withUnsafeBytes {
        buffer.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: $0[output.sent..<(output.sent + count)]))
      }
      output.sent += count
    }
    guard output.sent == output.bytes.count else { return count }
    switch output.last {
    case .more:
      return count > 0 ? count : Int(NGHTTP2_ERR_DEFERRED.rawValue)
    case .end(let trailers):
      flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue | NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
      Self.withNameValues(trailers) { _ = nghttp2_submit_trailer(self.session, stream, $0, $1) }
    case .endWithoutTrailers:
      flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
    }
    return count
  }

  private static func withNameValues(
    _ headers: [HTTP2Header], _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Void
  ) {
    var text: [UInt8] = []
    for header in headers {
      text += header.name.utf8
      text += header.value.utf8
    }
    text.withUnsafeMutableBufferPointer { buffer in
      var offset = 0
      let list = headers.map { header in
        let name = buffer.baseAddress?.advanced(by: offset)
        offset += header.name.utf8.count
        let value = buffer.baseAddress?.advanced(by: offset)
        offset += header.value.utf8.count
        // The library copies both: no NO_COPY flag is set.
        return nghttp2_nv(
          name: name, value: value, namelen: header.name.utf8.count,
          valuelen: header.value.utf8.count, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
      }
      list.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }
  }

  // MARK: Callbacks

  private static func setCallbacks(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      _, frame, name, nameCount, value, valueCount, _, user in
      guard let frame, let user else { return 0 }
      let this = Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
      let text = { (start: UnsafePointer<UInt8>?, count: Int) in
        String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
      }
      this.headers[frame.pointee.hd.stream_id, default: []].append(
        HTTP2Header(text(name, nameCount), text(value, valueCount)))
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue().received(
        frame.pointee.hd)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
      guard let header = frame?.pointee.hd, let user,
        UInt32(header.type) == NGHTTP2_HEADERS.rawValue
          || UInt32(header.type) == NGHTTP2_DATA.rawValue,
        UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
      else { return 0 }
      Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue().ended.append(
        header.stream_id)
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
      _, _, stream, data, count, user in
      guard let user else { return 0 }
      let this = Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
      this.events.append(
        .data(stream: stream, bytes: Array(UnsafeBufferPointer(start: data, count: count))))
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
      guard let user else { return 0 }
      let this = Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
      this.headers[stream] = nil
      this.outputs[stream] = nil
      this.events.append(.closed(stream: stream))
      return 0
    }
  }

  private func received(_ frame: nghttp2_frame_hd) {
    let isEnd = UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
    switch UInt32(frame.type) {
    case NGHTTP2_HEADERS.rawValue:
      if let headers = self.headers.removeValue(forKey: frame.stream_id),
        headers.contains(where: { $0.name == ":path" })
      {
        self.events.append(.request(stream: frame.stream_id, headers: headers))
      }
      if isEnd { self.events.append(.endOfInput(stream: frame.stream_id)) }
    case NGHTTP2_DATA.rawValue:
      if isEnd { self.events.append(.endOfInput(stream: frame.stream_id)) }
    default: break
    }
  }
}
