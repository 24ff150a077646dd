import COpenSSL
import EventLoop
import Glibc

/// One end of a TLS connection over a non-blocking socket.
package final class TLSConnection: ByteStream {
  private let ssl: OpaquePointer  // SSL *
  private let socket: Socket
  private let context: TLSContext
  /// The host a client asked for; nil on the side of the server.
  private let hostName: String?
  private var isBroken = false
  private var isEstablished = false
  /// The issuer of the server's certificate that was not accepted.
  private var refusedIssuer: String?

  private init(context: TLSContext, socket: consuming Socket, hostName: String?) throws(TLSError) {
    EventLoop.ignoreBrokenPipes()  // OpenSSL writes with write(2)
    self.ssl = try context.makeSSL()
    self.socket = socket
    self.context = context
    self.hostName = hostName
    guard SSL_set_fd(self.ssl, self.socket.descriptor) == 1 else {
      throw TLSError(.system, "TLS on socket: \(OpenSSLErrors.drain())")
    }
  }

  deinit { SSL_free(self.ssl) }

  /// The client's end.
  /// - Parameter hostName: DNS name or numeric address that the server's certificate must hold.
  ///   A name is also sent to the server (SNI), an address is not.
  package static func client(
    context: TLSContext, socket: consuming Socket, hostName: String
  ) throws(TLSError) -> TLSConnection {
    let connection = try TLSConnection(context: context, socket: socket, hostName: hostName)
    // RFC 6066 section 3: the name is sent without a trailing dot; certificates have none either.
    let name = hostName.hasSuffix(".") ? String(hostName.dropLast()) : hostName
    ERR_clear_error()
    // Unretained: the connection owns the SSL *, so it outlives every call.
    SSL_set_ex_data(connection.ssl, 0, Unmanaged.passUnretained(connection).toOpaque())
    SSL_set_verify(connection.ssl, SSL_VERIFY_PEER, noteRefusedCertificate)
    SSL_set_hostflags(connection.ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    // In OpenSSL 3 this compares numeric addresses with the certificate's addresses as well.
    guard SSL_set1_host(connection.ssl, name) == 1 else {
      throw TLSError(.badConfiguration, "host name '\(name)': \(OpenSSLErrors.drain())")
    }
    if !SocketAddress.isNumeric(name) {
      guard c_SSL_set_tlsext_host_name(connection.ssl, name) == 1 else {
        throw TLSError(.badConfiguration, "host name '\(name)': \(OpenSSLErrors.drain())")
      }
    }
    SSL_set_connect_state(connection.ssl)
    return connection
  }

  /// The server's end.
  package static func server(
    context: TLSContext, socket: consuming Socket
  ) throws(TLSError) -> TLSConnection {
    let connection = try TLSConnection(context: context, socket: socket, hostName: nil)
    SSL_set_accept_state(connection.ssl)
    return connection
  }

  package var descriptor: Int32 { self.socket.descriptor }

  package var hasBufferedInput: Bool { SSL_has_pending(self.ssl) == 1 }

  package var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(self.ssl, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  package var peerIssuer: String? {
    SSL_get0_peer_certificate(self.ssl).flatMap(TrustStore.issuer)
  }

  /// - Throws: an identity error (`isIdentityError`) when a client does not accept the server,
  ///   `applicationProtocolMissing` when a client offered protocols and the server took none.
  package func handshake() throws(TLSError) -> StreamStep {
    ERR_clear_error()
    let code = SSL_do_handshake(self.ssl)
    guard code == 1 else { return try self.step(after: code, during: .handshake) }
    if self.hostName != nil, self.context.requiresApplicationProtocol {
      let selected = self.applicationProtocol
      guard let selected, self.context.offers(selected) else {
        throw .withoutHTTP2(
          "\(self.peer) supports TLS but agreed on \(selected ?? "no application protocol") (ALPN)",
          issuer: self.peerIssuer)
      }
    }
    self.isEstablished = true
    return .done(byteCount: 0)
  }

  /// An end without TLS's own farewell counts as `closed` too: peers are careless here, and the
  /// protocol above must know its own end anyway, as HTTP/2 does.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> StreamStep {
    ERR_clear_error()
    var count = 0
    let code = SSL_read_ex(self.ssl, buffer.baseAddress, buffer.count, &count)
    guard code == 1 else { return try self.step(after: code, during: .read) }
    return .done(byteCount: count)
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep {
    ERR_clear_error()
    var count = 0
    let code = SSL_write_ex(self.ssl, bytes.baseAddress, bytes.count, &count)
    guard code == 1 else { return try self.step(after: code, during: .write) }
    return .done(byteCount: count)
  }

  package func shutdown() throws(TLSError) -> StreamStep {
    // After a fatal error, or before the handshake is over, OpenSSL forbids the farewell.
    guard self.isEstablished, !self.isBroken else { return .done(byteCount: 0) }
    ERR_clear_error()
    let code = SSL_shutdown(self.ssl)
    // 0: ours is sent, the peer's has not come; nobody waits for it.
    guard code < 0 else { return .done(byteCount: 0) }
    return try self.step(after: code, during: .shutdown)
  }

  private enum Operation: String { case handshake, read, write, shutdown }

  private var peer: String { self.hostName.map { "'\($0)'" } ?? "the client" }

  /// Turns the result of a failed call into a step or an error. Runs directly after the call.
  private func step(
    after code: Int32, during operation: Operation
  ) throws(TLSError) -> StreamStep {
    let number = errno
    switch SSL_get_error(self.ssl, code) {
    case SSL_ERROR_WANT_READ: return .wantsRead
    case SSL_ERROR_WANT_WRITE: return .wantsWrite
    case SSL_ERROR_ZERO_RETURN: return .closed
    case SSL_ERROR_SYSCALL:
      self.isBroken = true
      ERR_clear_error()
      if operation == .handshake {
        let reason = number == 0 ? "connection closed" : SystemCallError.text(of: number)
        throw TLSError(.handshakeFailed, "TLS handshake with \(self.peer): \(reason)")
      }
      if number == 0, operation == .read { return .closed }
      throw TLSError.system("TLS \(operation.rawValue)", number, code: .connectionLost)
    default:
      self.isBroken = true
      let isEndOfStream =
        ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
      if isEndOfStream, operation == .read {
        ERR_clear_error()
        return .closed
      }
      throw self.failure(during: operation, isEndOfStream: isEndOfStream)
    }
  }

  private func failure(during operation: Operation, isEndOfStream: Bool) -> TLSError {
    let verification = SSL_get_verify_result(self.ssl)
    let reason = ERR_GET_REASON(ERR_peek_error())
    let isCertificateRefused = Self.isCertificateRefusal(reason)
    let reasons = OpenSSLErrors.drain()
    // In TLS 1.3 it comes when the handshake is over on this side.
    if isCertificateRefused, self.hostName != nil {
      return TLSError(
        .clientCertificateRefused,
        "\(self.peer) requires a client certificate, or a different one: \(reasons)")
    }
    guard operation == .handshake else {
      return TLSError(.connectionLost, "TLS \(operation.rawValue): \(reasons)")
    }
    guard verification == Int(X509_V_OK) else {
      let text = String(cString: X509_verify_cert_error_string(verification))
      let code = Self.identityCode(verification)
      return TLSError(
        code,
        "the certificate of \(self.peer) was rejected: \(text)\(self.identityAdvice(code))")
    }
    if reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, self.hostName != nil {
      return .withoutHTTP2("\(self.peer) supports TLS but not HTTP/2 (ALPN)", issuer: nil)
    }
    if isEndOfStream {
      return TLSError(
        .handshakeFailed, "\(self.peer) closed the connection during the TLS handshake")
    }
    return TLSError(.handshakeFailed, "TLS handshake with \(self.peer): \(reasons)")
  }

  private func identityAdvice(_ code: TLSError.Code) -> String {
    let issuer = self.refusedIssuer.map { " (issued by '\($0)')" } ?? ""
    switch code {
    case .untrustedCertificate:
      if let problem = self.context.trustProblem { return "\(issuer); \(problem)" }
      return "\(issuer); if a proxy inspects TLS, name the PEM file of its CA as tls.ca_file"
    case .certificateExpired: return "\(issuer); check this machine's clock"
    default: return "\(issuer); check the host name"
    }
  }

  fileprivate func refused(_ certificate: OpaquePointer?) {
    self.refusedIssuer = certificate.flatMap(TrustStore.issuer)
  }

  /// An alert that is about the certificate of the side that gets it (RFC 8446 section 6.2). A server
  /// without further interest in us just closes.
  private static func isCertificateRefusal(_ reason: Int32) -> Bool {
    switch reason {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
      SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
      SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
      SSL_R_TLSV1_ALERT_UNKNOWN_CA, SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      true
    default: false
    }
  }

  /// Sorts OpenSSL's verification results (x509_vfy.h).
  private static func identityCode(_ result: Int) -> TLSError.Code {
    switch Int32(truncatingIfNeeded: result) {
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .hostNameMismatch
    case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID: .certificateExpired
    default: .untrustedCertificate
    }
  }
}

/// Remembers whose certificate OpenSSL does not accept, since it keeps none from a handshake that failed.
private func noteRefusedCertificate(_ isAccepted: Int32, _ store: OpaquePointer?) -> Int32 {
  guard isAccepted == 0, let store,
    let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
    let owner = SSL_get_ex_data(OpaquePointer(ssl), 0)
  else { return isAccepted }
  Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue()
    .refused(X509_STORE_CTX_get0_cert(store))
  return isAccepted
}
