import EventLoop
import Glibc

/// An error of a socket, of TLS, or of the certificates and keys for TLS.
public struct TLSError: Error, Sendable, CustomStringConvertible {
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Value: String {
      case untrustedCertificate, hostNameMismatch, certificateExpired, badConfiguration
      case applicationProtocolMissing, handshakeFailed, clientCertificateRefused
      case addressNotFound, connectFailed, proxyRefused, connectionLost, timedOut, system
    }

    private var value: Value
    private init(_ value: Value) { self.value = value }
    public var description: String { self.value.rawValue }

    /// The chain of the peer does not lead to a trusted authority, or is malformed or too weak.
    public static var untrustedCertificate: Self { Self(.untrustedCertificate) }
    /// The certificate is good, but for another host name or address.
    public static var hostNameMismatch: Self { Self(.hostNameMismatch) }
    /// A certificate of the chain is past its end or before its beginning.
    public static var certificateExpired: Self { Self(.certificateExpired) }
    /// Certificates or keys given to us cannot be read or do not fit together.
    public static var badConfiguration: Self { Self(.badConfiguration) }
    /// The peer agreed to none of the application protocols asked for (ALPN, RFC 7301).
    public static var applicationProtocolMissing: Self { Self(.applicationProtocolMissing) }
    /// The handshake failed for a reason other than the identity of the peer.
    public static var handshakeFailed: Self { Self(.handshakeFailed) }
    /// The peer wants a certificate of ours, or another one.
    public static var clientCertificateRefused: Self { Self(.clientCertificateRefused) }
    /// The host name has no address, or name service did not answer.
    public static var addressNotFound: Self { Self(.addressNotFound) }
    /// No TCP connection came about: refused, unreachable.
    public static var connectFailed: Self { Self(.connectFailed) }
    /// The proxy on the way wants other credentials, or forbids to reach the peer.
    public static var proxyRefused: Self { Self(.proxyRefused) }
    /// An established connection broke.
    public static var connectionLost: Self { Self(.connectionLost) }
    /// A deadline passed while connecting.
    public static var timedOut: Self { Self(.timedOut) }
    /// Another call of the operating system failed.
    public static var system: Self { Self(.system) }
  }

  public var code: Code
  public var message: String
  public var fileID: String
  public var line: Int

  public init(_ code: Code, _ message: String, fileID: String = #fileID, line: Int = #line) {
    self.code = code
    self.message = message
    self.fileID = fileID
    self.line = line
  }

  /// Whether the peer could not prove its identity. A retry does not help until a certificate or
  /// the trust settings change.
  public var isIdentityError: Bool {
    self.code == .untrustedCertificate || self.code == .hostNameMismatch
      || self.code == .certificateExpired
  }

  /// Whether trying again is of no use until somebody changes certificates, trust or settings.
  public var needsIntervention: Bool {
    self.isIdentityError || self.code == .badConfiguration || self.code == .proxyRefused
      || self.code == .clientCertificateRefused
  }

  public var description: String { "\(self.code): \(self.message)" }

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
