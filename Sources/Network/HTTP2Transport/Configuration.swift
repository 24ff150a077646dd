package import Clocks
internal import TLSStream

extension HTTP2ClientTransport {
  /// Where to connect and within which limits.
  public struct Configuration: Sendable {
    /// DNS name or numeric address. With TLS, the name that the certificate must hold.
    public var host: String
    /// TCP port.
    public var port: UInt16
    /// TLS, and whom to trust, or neither.
    public var security: Security
    /// Connections go through it; nil for straight to the host.
    public var proxy: Proxy?
    /// For name service, TCP, TLS and the peer's first frame together.
    public var connectTimeout: Duration = .seconds(20)
    /// Bytes of a stream that may be unread, when few streams share the connection.
    public var streamWindowBytes = 4 << 20
    /// Bytes of all streams that may be unread, apart from what single messages exceed it by.
    public var connectionWindowBytes = 16 << 20
    /// A longer message from the server fails its RPC with `resourceExhausted`.
    public var maxMessageBytes = 16 << 20
    /// Longer header blocks (names, values and 32 bytes for each field) fail their RPC.
    public var maxHeaderListBytes = 64 << 10
    /// When to check whether a silent server is still there.
    public var keepalive = Keepalive()
    /// How long to wait between attempts to connect.
    public var backoff = Backoff()
    /// Sent as `user-agent`, to a proxy too.
    public var userAgent = "pubsub-etl"
    /// The time of keepalives and pauses.
    package var clock = ProcessClock()
    /// Name service; replaced in tests.
    var resolver: SocketAddress.Resolver = { host, port throws(TLSError) in
      try SocketAddress.resolve(host: host, port: port)
    }

    /// The defaults of everything else suit one server and few streams.
    ///
    /// - Parameters:
    ///   - host: DNS name or numeric address, IPv6 without brackets.
    ///   - port: TCP port.
    ///   - security: TLS or plaintext.
    public init(host: String, port: UInt16, security: Security) {
      self.host = host
      self.port = port
      self.security = security
    }

    /// What protects the connection.
    public enum Security: Sendable, Hashable {
      /// HTTP/2 without TLS and without upgrade ("prior knowledge").
      case plaintext
      /// The certificate chain must lead to the system's authorities, or to a certificate of
      /// `caFile` (PEM) when it is given. `certificate` is shown to a server that asks for one.
      case tls(caFile: String?, certificate: ClientCertificate? = nil)
    }

    /// PEM files: a chain that begins with the own certificate, and its key without passphrase,
    /// which may be one file.
    public struct ClientCertificate: Sendable, Hashable {
      /// Path of the chain.
      public var certificateFile: String
      /// Path of the key.
      public var keyFile: String

      /// - Parameters:
      ///   - certificateFile: path of the chain.
      ///   - keyFile: path of the key; may be the same file.
      public init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
      }
    }

    /// An HTTP proxy that opens tunnels (CONNECT). It sees the name of the host, no content of TLS.
    public struct Proxy: Sendable, Hashable {
      /// Basic authentication (RFC 7617). Prints without its content.
      public struct Authorization: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// Without colon.
        public var user: String
        /// May be empty.
        public var password: String

        /// - Parameters:
        ///   - user: without colon.
        ///   - password: may be empty.
        public init(user: String, password: String) {
          self.user = user
          self.password = password
        }

        public var description: String { "<redacted>" }
        public var customMirror: Mirror { Mirror(self, children: []) }
      }

      /// DNS name or numeric address.
      public var host: String
      /// TCP port.
      public var port: UInt16
      /// Nil for a proxy that asks for none.
      public var authorization: Authorization?

      /// - Parameters:
      ///   - host: DNS name or numeric address.
      ///   - port: TCP port.
      ///   - authorization: nil for a proxy that asks for none.
      public init(host: String, port: UInt16, authorization: Authorization? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
      }

      var endpoint: String { HTTP2ClientTransport.Configuration.endpoint(self.host, self.port) }
    }

    /// PING while streams are open and the peer is silent.
    public struct Keepalive: Sendable, Hashable {
      /// Silence before a PING.
      public var interval: Duration = .seconds(60)
      /// Silence after a PING before the connection is closed.
      public var timeout: Duration = .seconds(20)
      /// A PING after 60 s of silence, and 20 s for its answer.
      public init() {}
    }

    /// Pauses between attempts to connect.
    public struct Backoff: Sendable, Hashable {
      /// The first pause.
      public var initial: Duration = .seconds(1)
      /// The longest pause.
      public var maximum: Duration = .seconds(60)
      /// From failure to failure.
      public var multiplier = 1.6
      /// Share of the pause that is random, in both directions.
      public var jitter = 0.2
      /// Pauses of 1 s to 60 s.
      public init() {}

      /// - Parameters:
      ///   - failures: in a row, at least 1.
      ///   - jitter: random, in -1...1.
      func pause(afterFailures failures: Int, jitter: Double) -> Duration {
        var pause = self.initial
        for _ in 1..<max(failures, 1) where pause < self.maximum { pause = pause * self.multiplier }
        return min(pause, self.maximum) * (1 + self.jitter * jitter)
      }
    }
  }
}

extension HTTP2ClientTransport.Configuration {
  var endpoint: String { Self.endpoint(self.host, self.port) }

  /// `host:port`, numeric IPv6 addresses in brackets.
  static func endpoint(_ host: String, _ port: UInt16) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// - Throws: `badConfiguration` for what would not fit into a line of a request.
  func check() throws(TLSError) {
    for text in [self.host, self.userAgent] {
      guard !text.isEmpty, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }),
        text != self.host || !text.utf8.contains(0x20)
      else {
        throw TLSError(
          .badConfiguration,
          "the host name or user agent contains unprintable characters")
      }
    }
    guard self.proxy?.authorization?.user.contains(":") != true else {
      throw TLSError(.badConfiguration, "the user of a proxy must not hold a colon")
    }
  }
}
