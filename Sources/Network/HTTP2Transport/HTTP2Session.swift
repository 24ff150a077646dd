internal import CNGHTTP2

/// What was received, or the result of what was to be sent, in order.
enum HTTP2Event {
  /// A complete block of header fields.
  case headers(stream: Int32, fields: [HeaderField], endsStream: Bool)
  /// Bytes of a body; they are in the buffer given to `receive` and are valid as long as it is.
  case data(stream: Int32, bytes: UnsafeRawBufferPointer)
  /// A DATA frame ended the peer's direction.
  case endOfStream(stream: Int32)
  /// The stream is over in both directions; 0 for a regular end, else a code of RFC 9113 section 7.
  case streamClosed(stream: Int32, errorCode: HTTP2ErrorCode)
  /// The request left this process.
  case requestSent(stream: Int32)
  /// The request never left: the peer takes no more of them.
  case requestNotSent(stream: Int32)
  /// A header block longer than was announced; the stream is being reset.
  case headersTooLong(stream: Int32)
  case settings
  case pingAcknowledged
  case goAway(errorCode: HTTP2ErrorCode, debugText: String)
}

/// Where the bytes of a request's body come from.
protocol RequestBody: AnyObject {
  /// Called while output is gathered; must not call the session.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> RequestBodyRead
}

enum RequestBodyRead {
  case bytes(Int, isEnd: Bool)
  /// Asked again after `resume`.
  case nothingYet
}

struct HTTP2SessionError: Error, Equatable {
  var message: String
}

/// The client's side of one HTTP/2 connection: frames in, frames out, no I/O. Used by one thread.
///
/// Callbacks of the library only append to a list of events, so that it is never re-entered.
final class HTTP2Session {
  struct Settings {
    var initialWindowBytes: Int
    var connectionWindowBytes: Int
    var maxHeaderListBytes: Int
    var maxFrameBytes = 1 << 20
  }

  private var session: OpaquePointer?  // nghttp2_session *
  private let settings: Settings
  private var events: [HTTP2Event] = []
  private var bodies: [Int32: any RequestBody] = [:]
  /// The header block being received.
  private var fields: [HeaderField] = []
  private var fieldsByteCount = 0

  init(settings: Settings) throws(HTTP2SessionError) {
    self.settings = settings
    var callbacks: OpaquePointer?  // nghttp2_session_callbacks *
    var option: OpaquePointer?  // nghttp2_option *
    guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else {
      preconditionFailure("nghttp2: out of memory")
    }
    defer {
      nghttp2_session_callbacks_del(callbacks)
      nghttp2_option_del(option)
    }
    nghttp2_option_set_no_auto_window_update(option, 1)
    // Streams are not looked at after their end: memory stays flat on long connections.
    nghttp2_option_set_no_closed_streams(option, 1)
    setCallbacks(callbacks)
    // Unretained: `deinit` deletes the session before this object is gone.
    let this = Unmanaged.passUnretained(self).toOpaque()
    try Self.check(nghttp2_session_client_new2(&self.session, callbacks, this, option), "create")
    try self.submitSettings()
  }

  deinit { nghttp2_session_del(self.session) }

  private func submitSettings() throws(HTTP2SessionError) {
    let entries = [
      (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
      (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, self.settings.initialWindowBytes),
      (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, self.settings.maxFrameBytes),
      (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, self.settings.maxHeaderListBytes),
    ].map {
      nghttp2_settings_entry(
        settings_id: Int32(bitPattern: $0.0.rawValue), value: UInt32(clamping: $0.1))
    }
    try Self.check(
      nghttp2_submit_settings(self.session, 0, entries, entries.count), "submit settings")
    try Self.check(
      nghttp2_session_set_local_window_size(
        self.session, 0, 0, Int32(clamping: self.settings.connectionWindowBytes)), "set window")
  }

  /// Takes bytes from the peer. Flush the output afterwards, then look at `isOver`: the library
  /// reports a broken peer by a GOAWAY to send, not by an error here.
  func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTP2SessionError) {
    let count = nghttp2_session_mem_recv(
      self.session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    if count < 0 { try Self.check(Int32(truncatingIfNeeded: count), "receive") }
  }

  /// The events since the last call, in order.
  func takeEvents() -> [HTTP2Event] {
    var taken: [HTTP2Event] = []
    swap(&taken, &self.events)
    return taken
  }

  var hasEvents: Bool { !self.events.isEmpty }

  /// Appends frames to `output` until there are none or it holds `limit` bytes.
  func send(into output: inout [UInt8], limit: Int) throws(HTTP2SessionError) {
    while output.count < limit {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(self.session, &frame)
      if count < 0 { try Self.check(Int32(truncatingIfNeeded: count), "send") }
      guard count > 0, let frame else { return }
      output.append(contentsOf: UnsafeBufferPointer(start: frame, count: count))
    }
  }

  /// Whether neither side has anything more to say: the connection is to be closed.
  var isOver: Bool {
    nghttp2_session_want_read(self.session) == 0 && nghttp2_session_want_write(self.session) == 0
  }

  /// Queues a request; the library holds it back while the peer's limit of streams is reached.
  /// - Returns: the stream's identifier.
  func submitRequest(
    _ fields: [HeaderField], body: any RequestBody
  ) throws(HTTP2SessionError) -> Int32 {
    // All names and values in one run of memory, which the entries point into; the library copies.
    var text: [UInt8] = []
    for field in fields {
      text += field.name.utf8
      text += field.value.utf8
    }
    var provider = nghttp2_data_provider()
    provider.read_callback = readBody
    let stream = text.withUnsafeMutableBufferPointer { text in
      var position = text.baseAddress
      var entries: [nghttp2_nv] = []
      for field in fields {
        let (name, value) = (field.name.utf8.count, field.value.utf8.count)
        entries.append(
          nghttp2_nv(
            name: position, value: position.map { $0 + name }, namelen: name, valuelen: value,
            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
        position = position.map { $0 + name + value }
      }
      return nghttp2_submit_request(self.session, nil, entries, entries.count, &provider, nil)
    }
    try Self.check(min(stream, 0), "submit a request")
    self.bodies[stream] = body
    return stream
  }

  /// The body of a stream has something to read again.
  func resume(_ stream: Int32) {
    // Fails when the body was not deferred before, or the stream is gone: both are fine.
    _ = nghttp2_session_resume_data(self.session, stream)
  }

  /// Ends a stream at once; its body is not read any more.
  func reset(_ stream: Int32, errorCode: HTTP2ErrorCode) throws(HTTP2SessionError) {
    self.bodies[stream] = nil
    try Self.check(
      nghttp2_submit_rst_stream(
        self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, errorCode.rawValue),
      "reset a stream")
  }

  /// - Parameter stream: 0 for the connection.
  func allow(_ byteCount: Int, on stream: Int32) throws(HTTP2SessionError) {
    try Self.check(
      nghttp2_submit_window_update(
        self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, Int32(clamping: byteCount)),
      "update a window")
  }

  func ping() throws(HTTP2SessionError) {
    try Self.check(
      nghttp2_submit_ping(self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil), "ping")
  }

  /// Sends GOAWAY (NO_ERROR): no more streams begin.
  func goAway() throws(HTTP2SessionError) {
    try Self.check(
      nghttp2_session_terminate_session(self.session, NGHTTP2_NO_ERROR.rawValue), "send GOAWAY")
  }

  private static func check(_ code: Int32, _ what: String) throws(HTTP2SessionError) {
    guard code != 0 else { return }
    precondition(code != NGHTTP2_ERR_NOMEM.rawValue, "nghttp2: out of memory")
    throw HTTP2SessionError(message: "HTTP/2, \(what): \(String(cString: nghttp2_strerror(code)))")
  }

  // Called by the library.

  fileprivate func beginHeaders() {
    self.fields.removeAll()
    self.fieldsByteCount = 0
  }

  /// Whether the field still fits.
  fileprivate func header(
    on stream: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    self.fieldsByteCount += name.count + value.count + 32  // as RFC 9113 section 6.5.2 counts
    guard self.fieldsByteCount <= self.settings.maxHeaderListBytes else {
      self.events.append(.headersTooLong(stream: stream))
      return false
    }
    self.fields.append(
      HeaderField(
        name: String(decoding: name, as: UTF8.self), value: String(decoding: value, as: UTF8.self)))
    return true
  }

  fileprivate func received(_ frame: nghttp2_frame) {
    let stream = frame.hd.stream_id
    let endsStream = frame.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    let isAcknowledgement = frame.hd.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
    switch UInt32(frame.hd.type) {
    case NGHTTP2_HEADERS.rawValue:
      self.events.append(.headers(stream: stream, fields: self.fields, endsStream: endsStream))
      self.beginHeaders()
    case NGHTTP2_DATA.rawValue where endsStream:
      self.events.append(.endOfStream(stream: stream))
    case NGHTTP2_SETTINGS.rawValue where !isAcknowledgement:
      self.events.append(.settings)
    case NGHTTP2_PING.rawValue where isAcknowledgement:
      self.events.append(.pingAcknowledged)
    case NGHTTP2_GOAWAY.rawValue:
      let goAway = frame.goaway
      let text = UnsafeBufferPointer(
        start: goAway.opaque_data, count: min(goAway.opaque_data_len, 200))
      self.events.append(
        .goAway(
          errorCode: HTTP2ErrorCode(rawValue: goAway.error_code),
          debugText: String(decoding: text, as: UTF8.self)))
    default: break
    }
  }

  fileprivate func received(_ bytes: UnsafeRawBufferPointer, on stream: Int32) {
    self.events.append(.data(stream: stream, bytes: bytes))
  }

  fileprivate func closed(_ stream: Int32, errorCode: HTTP2ErrorCode) {
    self.bodies[stream] = nil
    self.events.append(.streamClosed(stream: stream, errorCode: errorCode))
  }

  fileprivate func sent(_ frame: nghttp2_frame) {
    guard UInt32(frame.hd.type) == NGHTTP2_HEADERS.rawValue else { return }
    self.events.append(.requestSent(stream: frame.hd.stream_id))
  }

  fileprivate func notSent(_ frame: nghttp2_frame) {
    guard UInt32(frame.hd.type) == NGHTTP2_HEADERS.rawValue else { return }
    self.bodies[frame.hd.stream_id] = nil
    self.events.append(.requestNotSent(stream: frame.hd.stream_id))
  }

  fileprivate func body(
    of stream: Int32, into buffer: UnsafeMutableRawBufferPointer
  ) -> RequestBodyRead? {
    self.bodies[stream]?.read(into: buffer)
  }
}

// The callbacks: free functions that recover the session object and delegate at once.

private func this(_ userData: UnsafeMutableRawPointer?) -> HTTP2Session {
  guard let userData else { preconditionFailure("nghttp2 lost its user data") }
  return Unmanaged<HTTP2Session>.fromOpaque(userData).takeUnretainedValue()
}

private func setCallbacks(_ callbacks: OpaquePointer?) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, _, userData in
    this(userData).beginHeaders()
    return 0
  }
  nghttp2_session_callbacks_set_on_header_callback(callbacks) {
    _, frame, name, nameLength, value, valueLength, _, userData in
    let fits = this(userData).header(
      on: frame?.pointee.hd.stream_id ?? 0,
      UnsafeBufferPointer(start: name, count: nameLength),
      UnsafeBufferPointer(start: value, count: valueLength))
    // The library then resets the stream with INTERNAL_ERROR.
    return fits ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
  }
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, userData in
    if let frame { this(userData).received(frame.pointee) }
    return 0
  }
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
    _, _, stream, bytes, count, userData in
    this(userData).received(UnsafeRawBufferPointer(start: bytes, count: count), on: stream)
    return 0
  }
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
    _, stream, errorCode, userData in
    this(userData).closed(stream, errorCode: HTTP2ErrorCode(rawValue: errorCode))
    return 0
  }
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, userData in
    if let frame { this(userData).sent(frame.pointee) }
    return 0
  }
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, userData in
    if let frame { this(userData).notSent(frame.pointee) }
    return 0
  }
}

private func readBody(
  _ session: OpaquePointer?, _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>?,
  _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
  _ source: UnsafeMutablePointer<nghttp2_data_source>?, _ userData: UnsafeMutableRawPointer?
) -> Int {
  let target = UnsafeMutableRawBufferPointer(start: buffer, count: length)
  switch this(userData).body(of: stream, into: target) {
  case .bytes(let count, let isEnd):
    if isEnd { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
  case .nothingYet: return Int(NGHTTP2_ERR_DEFERRED.rawValue)
  // The stream was reset while this was queued.
  case nil: return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
  }
}
