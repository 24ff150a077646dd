internal import CCurl
internal import EventLoop
internal import Glibc

/// One request on its way through libcurl. `perform` runs once, on a thread of its own.
final class CurlTransfer: @unchecked Sendable {
  // Guard: only the thread of `perform` touches what it collects; `cancelled` is a lock.
  private let request: HTTPRequest
  private let url: HTTPURL
  private let configuration: HTTPClient.Configuration
  private let trust: CertificatePaths

  private var headers: [(name: String, value: String)] = []
  private var headerByteCount = 0
  private var body: [UInt8] = []
  private var exceeded: String?

  private let cancelled = Lock(false)

  private static let maxHeaderBytes = 256 << 10
  private static let globalInit: CURLcode = curl_global_init(ccurl_global_all)

  init(
    request: HTTPRequest, url: HTTPURL, configuration: HTTPClient.Configuration,
    trust: CertificatePaths
  ) {
    self.request = request
    self.url = url
    self.configuration = configuration
    self.trust = trust
  }

  /// Ends the transfer at curl's next progress call, at most a second away. Any thread.
  func cancel() { self.cancelled.withLock { $0 = true } }

  private var isCancelled: Bool { self.cancelled.withLock { $0 } }

  func perform() throws -> HTTPResponse {
    precondition(Self.globalInit == CURLE_OK, "curl_global_init: \(Self.globalInit)")
    guard let handle = curl_easy_init() else { preconditionFailure("curl: out of memory") }
    defer { curl_easy_cleanup(handle) }
    let detail = UnsafeMutablePointer<CChar>.allocate(capacity: ccurl_error_size)
    defer { detail.deallocate() }
    detail.initialize(repeating: 0, count: ccurl_error_size)
    try self.check(ccurl_set_pointer(handle, CURLOPT_ERRORBUFFER, detail))
    try self.setOptions(handle)
    let headerList = try self.makeHeaderList()
    defer { curl_slist_free_all(headerList) }
    try self.check(ccurl_set_list(handle, CURLOPT_HTTPHEADER, headerList))
    self.setCallbacks(handle)

    let result = curl_easy_perform(handle)
    if let exceeded = self.exceeded {
      throw HTTPError(.limitExceeded, "\(self.request): \(exceeded)")
    }
    if result == CURLE_ABORTED_BY_CALLBACK { throw CancellationError() }
    guard result == CURLE_OK else {
      try self.checkFiles(result)
      var connectStatus = 0
      try self.check(ccurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &connectStatus))
      throw HTTPError(
        curl: result, detail: String(cString: detail), request: self.request,
        connectStatus: connectStatus)
    }
    var status = 0
    try self.check(ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status))
    return HTTPResponse(status: status, headers: self.headers, body: self.body)
  }

  /// Descriptors may have run out just when libcurl wanted to read certificates, which it does not
  /// tell from files that hold none.
  private func checkFiles(_ result: CURLcode) throws(HTTPError) {
    guard [CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM].contains(result) else { return }
    let certificate = self.configuration.certificate
    for case let file? in [self.trust.file, certificate?.file, certificate?.keyFile] {
      if let error = SystemCallError.exhaustion(opening: file) {
        throw HTTPError(.system, "\(self.request): \(file): \(error)")
      }
    }
  }

  private func check(_ result: CURLcode) throws(HTTPError) {
    guard result == CURLE_OK else {
      throw HTTPError(curl: result, detail: "", request: self.request)
    }
  }

  private func setOptions(_ handle: UnsafeMutableRawPointer) throws(HTTPError) {
    try self.check(ccurl_set_http_only(handle))
    try self.check(ccurl_set_string(handle, CURLOPT_URL, self.request.url))
    try self.check(ccurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0))
    // Time-outs of name resolution use signals otherwise, which belong to the whole process.
    try self.check(ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1))
    try self.check(ccurl_set_long(handle, CURLOPT_SSLVERSION, ccurl_tls_1_2))
    try self.check(
      ccurl_set_long(
        handle, CURLOPT_CONNECTTIMEOUT_MS, self.configuration.connectTimeout.inMilliseconds))
    try self.check(
      ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, self.configuration.timeout.inMilliseconds))
    try self.check(ccurl_set_string(handle, CURLOPT_USERAGENT, self.configuration.userAgent))
    // Empty: every encoding this curl can undo.
    try self.check(ccurl_set_string(handle, CURLOPT_ACCEPT_ENCODING, ""))
    try self.check(ccurl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1))
    try self.setProxy(handle)
    if let certificate = self.configuration.certificate {
      try self.check(ccurl_set_string(handle, CURLOPT_SSLCERT, certificate.file))
      try self.check(ccurl_set_string(handle, CURLOPT_SSLKEY, certificate.keyFile))
      // Without it OpenSSL would ask on the terminal for the passphrase of an encrypted key.
      try self.check(ccurl_set_string(handle, CURLOPT_KEYPASSWD, ""))
    }
    if !self.trust.isCurlDefault {
      // Nil takes the built-in default away.
      try self.check(ccurl_set_string(handle, CURLOPT_CAINFO, self.trust.file))
      try self.check(ccurl_set_string(handle, CURLOPT_CAPATH, self.trust.directory))
    }
    if self.request.method == .post {
      try self.check(ccurl_set_long(handle, CURLOPT_POST, 1))
      try self.check(
        ccurl_set_offset(
          handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(self.request.body.count)))
      var body = self.request.body
      let result = body.withUnsafeMutableBytes { bytes in
        // An empty array may have no address, and curl takes null for "read from a callback".
        bytes.isEmpty
          ? ccurl_set_string(handle, CURLOPT_COPYPOSTFIELDS, "")
          : ccurl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress)
      }
      try self.check(result)
    }
  }

  private func setProxy(_ handle: UnsafeMutableRawPointer) throws(HTTPError) {
    switch self.configuration.proxy {
    // A proxy would read what was to stay on this machine.
    case _ where !self.url.isSecure, .none:
      try self.check(ccurl_set_string(handle, CURLOPT_PROXY, ""))
    case .environment: break
    case .server(let server):
      try self.check(ccurl_set_string(handle, CURLOPT_PROXY, server.url))
      // Empty: the exceptions of the environment do not count.
      try self.check(ccurl_set_string(handle, CURLOPT_NOPROXY, ""))
      if let user = server.user {
        try self.check(ccurl_set_long(handle, CURLOPT_PROXYAUTH, ccurl_auth_basic))
        try self.check(ccurl_set_string(handle, CURLOPT_PROXYUSERNAME, user))
        try self.check(ccurl_set_string(handle, CURLOPT_PROXYPASSWORD, server.password ?? ""))
      }
    }
  }

  /// - Returns: a list to be freed by the caller.
  private func makeHeaderList() throws(HTTPError) -> UnsafeMutablePointer<curl_slist>? {
    // curl asks before it sends a larger body unless told not to; servers answer slowly to that.
    var list = curl_slist_append(nil, "Expect:")
    for (name, value) in self.request.headers {
      let line = "\(name): \(value)"
      guard !line.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }), !name.isEmpty else {
        curl_slist_free_all(list)
        throw HTTPError(
          .invalidRequest,
          "\(self.request): header \(name.prefix(40).debugDescription) contains a line break")
      }
      // curl takes "Name:" for "do not send", "Name;" for an empty value.
      list = curl_slist_append(list, value.isEmpty ? "\(name);" : line)
    }
    return list
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
    ccurl_set_progress(handle) { me, _, _, _, _ in
      guard let me else { return 0 }
      return Unmanaged<CurlTransfer>.fromOpaque(me).takeUnretainedValue().isCancelled ? 1 : 0
    }
    ccurl_set_long(handle, CURLOPT_NOPROGRESS, 0)
  }

  private func take(body bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count <= self.configuration.maxBodyBytes - self.body.count else {
      self.exceeded = "the response has more than \(self.configuration.maxBodyBytes) bytes"
      return false
    }
    self.body.append(contentsOf: bytes)
    return true
  }

  private func take(header bytes: UnsafeRawBufferPointer) -> Bool {
    self.headerByteCount += bytes.count
    guard self.headerByteCount <= Self.maxHeaderBytes else {
      self.exceeded = "the response has more than \(Self.maxHeaderBytes) bytes of headers"
      return false
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

extension Duration {
  fileprivate var inMilliseconds: Int {
    let (seconds, attoseconds) = self.components
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}
