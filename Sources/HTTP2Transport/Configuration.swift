extension HTTP2ClientTransport {
  /// Where to connect and within which limits.
  public struct Configuration: Sendable {
    /// DNS name or numeric address. With TLS, the name that the certificate must hold.
    public var host: String
    public var port: UInt16
    public var security: Security
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
    public var keepalive = Keepalive()
    public var backoff = Backoff()
    /// Sent as `user-agent`.
    public var userAgent = "pubsub-etl"

    public init(host: String, port: UInt16, security: Security) {
      self.host = host
      self.port = port
      self.security = security
    }

    public enum Security: Sendable, Hashable {
      /// HTTP/2 without TLS and without upgrade ("prior knowledge").
      case plaintext
      /// The certificate chain must lead to the system's authorities, or to a certificate of
      /// `caFile` (PEM) when it is given.
      case tls(caFile: String?)
    }

    /// PING while streams are open and the peer is silent.
    public struct Keepalive: Sendable, Hashable {
      /// Silence before a PING.
      public var interval: Duration = .seconds(60)
      /// Silence after a PING before the connection is given up.
      public var timeout: Duration = .seconds(20)
      public init() {}
    }

    /// Pauses between attempts to connect.
    public struct Backoff: Sendable, Hashable {
      public var initial: Duration = .seconds(1)
      public var maximum: Duration = .seconds(60)
      /// From failure to failure.
      public var multiplier = 1.6
      /// Share of the pause that is random, in both directions.
      public var jitter = 0.2
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
  /// `host:port`, numeric IPv6 addresses in brackets.
  var endpoint: String {
    self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
  }
}
