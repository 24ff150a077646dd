internal import CCurl

/// A request that got no answer.
package struct HTTPError: Error, Sendable {
  package struct Code: Hashable, Sendable {
    private enum Value {
      case invalidRequest, untrusted, trustStore, certificate, proxyRefused
      case resolution, connection, timeout, limitExceeded, system
    }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// A URL or header that is not sent: malformed, or plain `http` to another machine.
    package static var invalidRequest: Self { Self(.invalidRequest) }
    /// The peer could not prove who it is: unknown issuer, other host name, expired certificate.
    package static var untrusted: Self { Self(.untrusted) }
    /// The file or directory of trusted certificates cannot be used.
    package static var trustStore: Self { Self(.trustStore) }
    /// Our own certificate or its key cannot be used.
    package static var certificate: Self { Self(.certificate) }
    /// The proxy wants other credentials, or forbids to reach the server.
    package static var proxyRefused: Self { Self(.proxyRefused) }
    /// A host name, the proxy's or the server's, has no address.
    package static var resolution: Self { Self(.resolution) }
    /// No connection, or one that broke, or a peer that speaks something else.
    package static var connection: Self { Self(.connection) }
    /// No complete answer in time.
    package static var timeout: Self { Self(.timeout) }
    /// An answer larger than is read.
    package static var limitExceeded: Self { Self(.limitExceeded) }
    /// The operating system refused what a request needs: a thread, a descriptor.
    package static var system: Self { Self(.system) }
  }

  package var code: Code
  /// Names method and URL without its query, never header values or bodies.
  package var message: String
  package var fileID: String, line: Int

  init(_ code: Code, _ message: String, fileID: String = #fileID, line: Int = #line) {
    (self.code, self.message, self.fileID, self.line) = (code, message, fileID, line)
  }

  /// The same request may succeed later.
  package var isTransient: Bool {
    [.resolution, .connection, .timeout, .system].contains(self.code)
  }

  /// - Parameters:
  ///   - detail: the text curl put into its error buffer; names hosts and certificates.
  ///   - connectStatus: of the proxy's answer to CONNECT, 0 for none.
  ///   - trustProblem: why no server is trusted.
  init(
    curl result: CURLcode, detail: String, request: HTTPRequest, connectStatus: Int = 0,
    trustProblem: @autoclosure () -> String? = nil, fileID: String = #fileID, line: Int = #line
  ) {
    let code: Code
    let advice: String
    switch result {
    case _ where connectStatus == 407:
      code = .proxyRefused
      advice = "; the proxy requires another user and password; put them into the proxy's URL"
    case _ where (300..<500).contains(connectStatus):
      code = .proxyRefused
      advice = "; the proxy refuses to connect to the server"
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
      code = .untrusted
      advice = "; \(trustProblem() ?? Self.identityAdvice(detail))"
    case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE:
      code = .trustStore
      advice = "; \(trustProblem() ?? "check tls.ca_file")"
    case CURLE_SSL_CERTPROBLEM:
      code = .certificate
      advice = "; check tls.certificate_file and tls.key_file"
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
      (code, advice) = (.resolution, "")
    case CURLE_OPERATION_TIMEDOUT: (code, advice) = (.timeout, "")
    // CURLE_UNSUPPORTED_PROTOCOL is not among them: the URL was checked before, so this code means
    // that the peer does not speak HTTP.
    case CURLE_URL_MALFORMAT: (code, advice) = (.invalidRequest, "")
    default: (code, advice) = (.connection, "")
    }
    let text = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
    self.init(code, "\(request): \(text)\(advice)", fileID: fileID, line: line)
  }

  /// - Parameter detail: curl's text about a certificate that was not accepted.
  private static func identityAdvice(_ detail: String) -> String {
    if detail.contains("expired") || detail.contains("not yet valid") {
      return "check this machine's clock"
    }
    if detail.contains("subject name") { return "check the host name" }
    return
      "check the host name, or, if a proxy inspects TLS, name the PEM file of its CA as tls.ca_file"
  }
}

extension HTTPError: CustomStringConvertible {
  package var description: String { self.message }
}
