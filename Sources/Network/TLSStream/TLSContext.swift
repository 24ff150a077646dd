import COpenSSL
import Glibc

/// Settings shared by TLS connections: whom to trust, or who we are. TLS 1.2 and newer only.
/// Immutable after creation, usable from every thread.
package final class TLSContext: @unchecked Sendable {
  // Guard: `context` is changed only by the initialisers; OpenSSL counts references atomically.
  private let context: OpaquePointer  // SSL_CTX *
  /// The protocols of ALPN in wire form (RFC 7301 section 3.1); memory that callbacks point into.
  private let protocols: UnsafeMutableBufferPointer<UInt8>
  private let offered: Set<String>
  private let trust: Trust?

  /// Whom a client trusts to name a server.
  package enum Trust: Sendable, Hashable {
    /// The authorities of the system: `SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set, else
    /// the hashed directory of OpenSSL, else a bundle file of the distribution.
    case system
    /// Exactly the certificates of this PEM file.
    case file(String)
  }

  /// Our own certificate: that of a server, or of a client whose server requests one.
  package enum Identity: Sendable {
    /// PEM files: the chain beginning with the own certificate, and its key, which may be one file.
    case files(certificateChain: String, privateKey: String)
    /// The same certificates as PEM texts.
    case pem(certificateChain: [UInt8], privateKey: [UInt8])
  }

  private init(
    method: OpaquePointer?, trust: Trust?, applicationProtocols: [String]
  ) throws(TLSError) {
    self.trust = trust
    self.offered = Set(applicationProtocols)
    ERR_clear_error()
    guard let context = SSL_CTX_new(method) else {
      throw TLSError(.system, "no TLS context: \(OpenSSLErrors.drain())")
    }
    self.context = context
    var wire: [UInt8] = []
    for name in applicationProtocols {
      let name = Array(name.utf8)
      precondition((1...255).contains(name.count), "an ALPN name has 1 to 255 bytes")
      wire.append(UInt8(name.count))
      wire += name
    }
    self.protocols = .allocate(capacity: wire.count)
    _ = self.protocols.initialize(from: wire)
    guard c_SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1,
      // With TLS 1.2, only what HTTP/2 allows (RFC 9113 section 9.2.2).
      SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
    else { throw TLSError(.system, "TLS 1.2 is not available: \(OpenSSLErrors.drain())") }
    // RSA below 2048 bits and SHA-1 signatures are refused, whatever the system's default is.
    SSL_CTX_set_security_level(context, 2)
    SSL_CTX_set_options(context, C_SSL_OP_NO_RENEGOTIATION)
    // The unsent bytes of a write may move in memory between two attempts.
    _ = c_SSL_CTX_set_mode(context, C_SSL_MODE_STREAMING)
    // Several records per system call.
    _ = c_SSL_CTX_set_read_ahead(context, 1)
    SSL_CTX_set_default_read_buffer_len(context, 128 * 1024)
  }

  deinit {
    SSL_CTX_free(self.context)
    self.protocols.deallocate()
  }

  /// A client that accepts a server only when its chain leads to `trust` and its certificate
  /// names the host.
  /// - Parameter identity: shown to a server that asks for it.
  /// - Throws: `badConfiguration` when the trusted certificates or the identity cannot be read.
  package static func client(
    trust: Trust = .system, identity: Identity? = nil, applicationProtocols: [String] = []
  ) throws(TLSError) -> TLSContext {
    let context = try TLSContext(
      method: TLS_client_method(), trust: trust, applicationProtocols: applicationProtocols)
    SSL_CTX_set_verify(context.context, SSL_VERIFY_PEER, nil)
    try TrustStore.load(trust, into: context.context)
    if let identity { try OwnIdentity.load(identity, into: context.context) }
    if !applicationProtocols.isEmpty {
      let wire = context.protocols
      // This function, unlike the others, returns 0 for success.
      guard SSL_CTX_set_alpn_protos(context.context, wire.baseAddress, UInt32(wire.count)) == 0
      else { throw TLSError(.system, "ALPN: \(OpenSSLErrors.drain())") }
    }
    return context
  }

  /// A server that shows `identity` and asks its clients for no certificate. A client that offers
  /// protocols of which none is in `applicationProtocols` is refused; one that offers none is not.
  /// - Throws: `badConfiguration` when certificates or key cannot be read or do not belong together.
  package static func server(
    identity: Identity, applicationProtocols: [String] = []
  ) throws(TLSError) -> TLSContext {
    let context = try TLSContext(
      method: TLS_server_method(), trust: nil, applicationProtocols: applicationProtocols)
    try OwnIdentity.load(identity, into: context.context)
    if !applicationProtocols.isEmpty {
      // Unretained: every SSL * is owned by a TLSConnection, which retains this object.
      SSL_CTX_set_alpn_select_cb(
        context.context, selectApplicationProtocol,
        Unmanaged.passUnretained(context).toOpaque())
    }
    return context
  }

  /// A new `SSL *`, owned by the caller, who must retain this object as long.
  func makeSSL() throws(TLSError) -> OpaquePointer {
    ERR_clear_error()
    guard let ssl = SSL_new(self.context) else {
      throw TLSError(.system, "no TLS connection: \(OpenSSLErrors.drain())")
    }
    return ssl
  }

  /// Whether clients offer protocols, so that an answer without one is an error.
  var requiresApplicationProtocol: Bool { !self.offered.isEmpty }

  func offers(_ name: String) -> Bool { self.offered.contains(name) }

  /// Why no server is trusted, when the system's store is to blame.
  var trustProblem: String? { self.trust == .system ? SystemTrust.problem() : nil }

  fileprivate func select(
    _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ outLength: UnsafeMutablePointer<UInt8>?,
    from offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32
  ) -> Int32 {
    var selected: UnsafeMutablePointer<UInt8>?
    let code = SSL_select_next_proto(
      &selected, outLength, self.protocols.baseAddress, UInt32(self.protocols.count), offered,
      offeredLength)
    guard code == OPENSSL_NPN_NEGOTIATED, let selected else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    out?.pointee = UnsafePointer(selected)
    return SSL_TLSEXT_ERR_OK
  }
}

private func selectApplicationProtocol(
  _ ssl: OpaquePointer?, _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  _ outLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?,
  _ offeredLength: UInt32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
  guard let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  let context = Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
  return context.select(out, outLength, from: offered, offeredLength)
}
