internal import CCurl

extension CurlTransfer {
  func setOptions(_ handle: UnsafeMutableRawPointer) throws(HTTPError) {
    try self.check(ccurl_set_http_only(handle))
    try self.check(ccurl_set_string(handle, CURLOPT_URL, self.request.url))
    try self.check(ccurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0))
    // Time-outs of name resolution use signals otherwise, which belong to the whole process.
    try self.check(ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1))
    try self.check(ccurl_set_long(handle, CURLOPT_SSLVERSION, ccurl_tls_1_2))
    try self.check(
      ccurl_set_long(
        handle, CURLOPT_CONNECTTIMEOUT_MS, self.configuration.connectTimeout.inMilliseconds))
    if case .total(let timeout) = self.timeLimit {
      try self.check(ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, timeout.inMilliseconds))
    }
    try self.check(ccurl_set_string(handle, CURLOPT_USERAGENT, self.configuration.userAgent))
    // Not with others: Bulk API 2.0 compresses results for exactly this value.
    if self.request.allowsCompression {
      try self.check(ccurl_set_string(handle, CURLOPT_ACCEPT_ENCODING, "gzip"))
    }
    // A path that was signed must arrive as it is.
    try self.check(ccurl_set_long(handle, CURLOPT_PATH_AS_IS, 1))
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
    try self.setMethod(handle)
  }

  private func setMethod(_ handle: UnsafeMutableRawPointer) throws(HTTPError) {
    let method = self.request.method
    if let source = self.source {
      try self.check(ccurl_set_long(handle, CURLOPT_UPLOAD, 1))
      try self.check(
        ccurl_set_offset(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(source.byteCount)))
      return
    }
    if method == .head { try self.check(ccurl_set_long(handle, CURLOPT_NOBODY, 1)) }
    if [.put, .post, .patch].contains(method) {
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
    if [.put, .patch, .delete].contains(method) {
      try self.check(ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, method.rawValue))
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
  func makeHeaderList() throws(HTTPError) -> UnsafeMutablePointer<curl_slist>? {
    var list: UnsafeMutablePointer<curl_slist>?
    // By default curl asks before it sends a larger body (Expect: 100-continue); servers answer slowly
    // to that. It pays for a body from a source: a server that refuses it might close the connection
    // while it is sent, and the reason would be lost.
    if self.source == nil { list = curl_slist_append(list, "Expect:") }
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
}

extension Duration {
  fileprivate var inMilliseconds: Int {
    let (seconds, attoseconds) = self.components
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}
