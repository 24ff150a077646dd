internal import CCurl
internal import Clocks
internal import EventLoop
internal import Glibc

/// Takes what a transfer receives, on the transfer's thread.
protocol ResponseReceiver: Sendable {
  /// Called once, before any part of the body, which the response does not have.
  func take(head: HTTPResponse)
  /// May block, which holds up the transfer. An error ends it and is thrown by `perform`.
  func take(body: UnsafeRawBufferPointer) throws
}

/// One request on its way through libcurl. `perform` runs once, on a thread of its own.
final class CurlTransfer: @unchecked Sendable {
  // Guard: only the thread of `perform` touches what changes; `cancelled` is a lock.
  enum TimeLimit {
    case total(Duration)
    /// See `StallDetector`. Time in which the receiver blocks does not count.
    case stall(Duration)
  }

  let request: HTTPRequest
  let url: HTTPURL
  let configuration: HTTPClient.Configuration
  let trust: CertificatePaths
  let timeLimit: TimeLimit
  private let receiver: any ResponseReceiver
  /// The body, unless it is in `request.body`.
  let source: (any HTTPBodySource)?

  private var handle: UnsafeMutableRawPointer?  // CURL *, while `perform` runs
  private var headers: [(name: String, value: String)] = []
  private var headerByteCount = 0
  /// Status of the final response; nil until its headers have come.
  private var status: Int?
  private var bodyByteCount = 0
  /// Bytes of `source` that curl has taken.
  private var sentByteCount = 0
  private var stall: StallDetector?
  /// Why a callback has ended the transfer.
  private var failure: (any Error)?

  private let cancelled = Lock(false)

  private static let maxHeaderBytes = 256 << 10
  private static let globalInit: CURLcode = curl_global_init(ccurl_global_all)

  init(
    request: HTTPRequest, url: HTTPURL, configuration: HTTPClient.Configuration,
    trust: CertificatePaths, timeLimit: TimeLimit, receiver: any ResponseReceiver
  ) {
    self.request = request
    self.url = url
    self.configuration = configuration
    self.trust = trust
    self.timeLimit = timeLimit
    self.receiver = receiver
    self.source = request.method == .put ? request.source : nil
  }

  /// Ends the transfer at curl's next progress call, at most a second away. Any thread.
  func cancel() { self.cancelled.withLock { $0 = true } }

  private var isCancelled: Bool { self.cancelled.withLock { $0 } }

  /// Returns after the whole body was received.
  func perform() throws {
    guard let onExchange = self.configuration.onExchange else { return try self.exchange() }
    let start = ContinuousClock.now
    let result = Result { try self.exchange() }
    var failure: String?
    if case .failure(let error) = result { failure = (error as? HTTPError)?.message ?? "cancelled" }
    onExchange(
      HTTPExchange(
        method: self.request.method, url: HTTPURL.withoutQuery(self.request.url),
        status: self.status, bodyByteCount: self.bodyByteCount, duration: .now - start,
        failure: failure))
    try result.get()
  }

  private func exchange() throws {
    precondition(Self.globalInit == CURLE_OK, "curl_global_init: \(Self.globalInit)")
    guard let handle = curl_easy_init() else { preconditionFailure("curl: out of memory") }
    self.handle = handle
    defer {
      self.handle = nil
      curl_easy_cleanup(handle)
    }
    let detail = UnsafeMutablePointer<CChar>.allocate(capacity: ccurl_error_size)
    defer { detail.deallocate() }
    detail.initialize(repeating: 0, count: ccurl_error_size)
    try self.check(ccurl_set_pointer(handle, CURLOPT_ERRORBUFFER, detail))
    try self.setOptions(handle)
    let headerList = try self.makeHeaderList()
    defer { curl_slist_free_all(headerList) }
    try self.check(ccurl_set_list(handle, CURLOPT_HTTPHEADER, headerList))
    self.setCallbacks(handle)
    if case .stall(let limit) = self.timeLimit {
      self.stall = StallDetector(
        limit: limit, bytesPerSecond: self.configuration.minBytesPerSecond,
        start: SuspendingClock.now)
    }

    let result = self.configuration.clock.waitingForOthers { curl_easy_perform(handle) }
    if let failure = self.failure { throw failure }
    if result == CURLE_ABORTED_BY_CALLBACK { throw CancellationError() }
    guard result == CURLE_OK else {
      try self.checkFiles(result)
      var connectStatus = 0
      try self.check(ccurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &connectStatus))
      throw HTTPError(
        curl: result, detail: String(cString: detail), request: self.request,
        connectStatus: connectStatus, trustProblem: self.trust.problem)
    }
    guard self.status != nil else { throw self.noFinalStatus() }
  }

  /// libcurl may have run out of descriptors when it read the certificates, which it reports like
  /// files without certificates.
  private func checkFiles(_ result: CURLcode) throws(HTTPError) {
    guard [CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM].contains(result) else { return }
    let certificate = self.configuration.certificate
    for case let file? in [self.trust.file, certificate?.file, certificate?.keyFile] {
      if let error = SystemCallError.exhaustion(opening: file) {
        throw HTTPError(.system, "\(self.request): \(file): \(error)")
      }
    }
  }

  func check(_ result: CURLcode) throws(HTTPError) {
    guard result == CURLE_OK else {
      throw HTTPError(curl: result, detail: "", request: self.request)
    }
  }

  private func setCallbacks(_ handle: UnsafeMutableRawPointer) {
    // The transfer outlives the handle: `perform` is one of its methods.
    let me = Unmanaged.passUnretained(self).toOpaque()
    ccurl_set_pointer(handle, CURLOPT_WRITEDATA, me)
    ccurl_set_pointer(handle, CURLOPT_HEADERDATA, me)
    ccurl_set_pointer(handle, CURLOPT_XFERINFODATA, me)
    ccurl_set_write(handle, CURLOPT_WRITEFUNCTION) { data, size, count, me in
      guard let data, let me else { return 0 }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue()
      let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
      return transfer.take(body: bytes) ? bytes.count : 0
    }
    ccurl_set_write(handle, CURLOPT_HEADERFUNCTION) { data, size, count, me in
      guard let data, let me else { return 0 }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue()
      let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
      return transfer.take(header: bytes) ? bytes.count : 0
    }
    if self.source != nil {
      ccurl_set_pointer(handle, CURLOPT_READDATA, me)
      ccurl_set_read(handle) { data, size, count, me in
        guard let data, let me else { return ccurl_read_abort }
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue()
        return transfer.give(UnsafeMutableRawBufferPointer(start: data, count: size * count))
      }
      // Curl goes back when it has to send the body again.
      ccurl_set_pointer(handle, CURLOPT_SEEKDATA, me)
      ccurl_set_seek(handle) { me, offset, origin in
        guard let me, origin == SEEK_SET else { return CURL_SEEKFUNC_FAIL }
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue()
        transfer.sentByteCount = Int(offset)
        return CURL_SEEKFUNC_OK
      }
    }
    ccurl_set_progress(handle) { me, _, downloaded, _, uploaded in
      guard let me else { return 0 }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue()
      return transfer.mayGoOn(bytesSoFar: Int(downloaded + uploaded)) ? 0 : 1
    }
    ccurl_set_long(handle, CURLOPT_NOPROGRESS, 0)
  }

  private func mayGoOn(bytesSoFar: Int) -> Bool {
    if self.isCancelled { return false }
    let received = bytesSoFar + self.headerByteCount
    if self.stall?.isStalled(byteCount: received, at: SuspendingClock.now) == true {
      self.failure = HTTPError(
        .timeout,
        "\(self.request): \(self.source == nil ? "the server sent" : "the server took and sent") less "
          + "than \(self.configuration.minBytesPerSecond) bytes per second for "
          + "\(self.configuration.stallTimeout)")
      return false
    }
    return true
  }

  /// Fills the buffer with the next bytes of the body.
  ///
  /// - Returns: how many, 0 at the end.
  private func give(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
    guard let source = self.source else { return ccurl_read_abort }
    let left = source.byteCount - self.sentByteCount
    guard left > 0 else { return 0 }
    do {
      let count = try source.read(
        into: UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(left)), at: self.sentByteCount)
      self.sentByteCount += count
      return count
    } catch {
      self.failure = error
      return ccurl_read_abort
    }
  }

  private func take(body bytes: UnsafeRawBufferPointer) -> Bool {
    guard self.status != nil else {
      self.failure = self.noFinalStatus()
      return false
    }
    self.bodyByteCount += bytes.count
    let start = SuspendingClock.now
    do {
      // A consumer that is slow is one of us.
      try self.configuration.clock.waitingForOurselves { try self.receiver.take(body: bytes) }
    } catch {
      self.failure = error
      return false
    }
    self.stall?.paused(for: SuspendingClock.now - start)
    return true
  }

  private func noFinalStatus() -> HTTPError {
    HTTPError(.connection, "\(self.request): the server did not send a final status")
  }

  /// The status is final: what interim answers (100 Continue) say is not passed on.
  private func deliverHead() {
    guard self.status == nil, let handle = self.handle else { return }
    var status = 0
    // Fails for unknown names only.
    ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    guard status >= 200 else { return }
    self.status = status
    self.receiver.take(head: HTTPResponse(status: status, headers: self.headers))
  }

  private func take(header bytes: UnsafeRawBufferPointer) -> Bool {
    self.headerByteCount += bytes.count
    guard self.headerByteCount <= Self.maxHeaderBytes else {
      self.failure = HTTPError(
        .limitExceeded,
        "\(self.request): the response has more than \(Self.maxHeaderBytes) bytes of headers")
      return false
    }
    // What follows the body (trailers) is not part of the head.
    if self.status != nil { return true }
    if bytes.allSatisfy({ $0 == 10 || $0 == 13 }) {
      self.deliverHead()
      return true
    }
    let line = String(decoding: bytes, as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      // A new answer begins; what came before was an interim one (100 Continue).
      self.headers.removeAll()
    } else if let colon = line.firstIndex(of: ":") {
      let value = line[line.index(after: colon)...].drop { $0.isWhitespace }
      let trimmed = value.reversed().drop { $0.isWhitespace }.reversed()
      self.headers.append((String(line[..<colon]), String(trimmed)))
    }
    return true
  }
}
