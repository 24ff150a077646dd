import EventLoop
import Glibc

/// An error of a socket, of TLS, or of the certificates and keys for TLS.
package struct TLSError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Value: String {
      case untrustedCertificate, hostNameMismatch, certificateExpired, badConfiguration
      case applicationProtocolMissing, handshakeFailed, clientCertificateRefused
      case addressNotFound, connectFailed, proxyRefused, connectionLost, timedOut, system
    }

    private var value: Value
    private init(_ value: Value) { self.value = value }
    package var description: String { self.value.rawValue }

    /// The chain of the peer does not lead to a trusted authority, or is malformed or too weak.
    package static var untrustedCertificate: Self { Self(.untrustedCertificate) }
    /// The certificate is good, but for another host name or address.
    package static var hostNameMismatch: Self { Self(.hostNameMismatch) }
    /// A certificate of the chain is past its end or before its beginning.
    package static var certificateExpired: Self { Self(.certificateExpired) }
    /// Certificates or keys given to us cannot be read or do not fit together.
    package static var badConfiguration: Self { Self(.badConfiguration) }
    /// The peer agreed to none of the application protocols asked for (ALPN, RFC 7301).
    package static var applicationProtocolMissing: Self { Self(.applicationProtocolMissing) }
    /// The handshake failed for a reason other than the identity of the peer.
    package static var handshakeFailed: Self { Self(.handshakeFailed) }
    /// The peer wants a certificate of ours, or another one.
    package static var clientCertificateRefused: Self { Self(.clientCertificateRefused) }
    /// The host name has no address, or name service did not answer.
    package static var addressNotFound: Self { Self(.addressNotFound) }
    /// No TCP connection came about: refused, unreachable.
    package static var connectFailed: Self { Self(.connectFailed) }
    /// The proxy on the way wants other credentials, or forbids to reach the peer.
    package static var proxyRefused: Self { Self(.proxyRefused) }
    /// An established connection broke.
    package static var connectionLost: Self { Self(.connectionLost) }
    /// A deadline passed while connecting.
    package static var timedOut: Self { Self(.timedOut) }
    /// Another call of the operating system failed.
    package static var system: Self { Self(.system) }
  }

  package var code: Code
  package var message: String
  package var fileID: String
  package var line: Int

  package init(_ code: Code, _ message: String, fileID: String = #fileID, line: Int = #line) {
    self.code = code
    self.message = message
    self.fileID = fileID
    self.line = line
  }

  /// Whether the peer could not prove its identity. A retry does not help until a certificate or
  /// the trust settings change.
  package var isIdentityError: Bool {
    self.code == .untrustedCertificate || self.code == .hostNameMismatch
      || self.code == .certificateExpired
  }

  /// Whether trying again is of no use until somebody changes certificates, trust or settings.
  package var needsIntervention: Bool {
    self.isIdentityError || self.code == .badConfiguration || self.code == .proxyRefused
      || self.code == .clientCertificateRefused
  }

  package var description: String { "\(self.code): \(self.message)" }

  /// A connection that HTTP/2, and so gRPC, cannot use.
  ///
  /// - Parameter issuer: of the server's certificate; nil when unknown.
  package static func withoutHTTP2(
    _ what: String, issuer: String?, fileID: String = #fileID, line: Int = #line
  ) -> TLSError {
    // The authority of Salesforce's own servers.
    let named = issuer.map {
      $0.contains("DigiCert") ? "" : " (the certificate is issued by '\($0)')"
    }
    return TLSError(
      .applicationProtocolMissing,
      "\(what); gRPC needs HTTP/2 from end to end, so a proxy that inspects TLS is probably in "
        + "between\(named ?? ""); exempt this host from inspection, or enable HTTP/2 in the proxy",
      fileID: fileID, line: line)
  }

  /// The failure of the system call `call`, with the text of `errno`.
  static func system(
    _ call: String, _ number: Int32 = errno, code: Code = .system, fileID: String = #fileID,
    line: Int = #line
  ) -> TLSError {
    TLSError(code, "\(call): \(SystemCallError.text(of: number))", fileID: fileID, line: line)
  }
}
