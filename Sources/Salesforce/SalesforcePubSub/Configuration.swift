public import Clocks
public import HTTP2Transport
internal import HTTPClient
public import PubSubAPI

extension SalesforcePubSubClient {
  /// Where the service is, how to log in, and what to do when a call fails.
  public struct Configuration: Sendable {
    /// An HTTP proxy that opens tunnels (CONNECT), for the service and for logins.
    public typealias Proxy = HTTP2ClientTransport.Configuration.Proxy
    /// PEM files of the client's own certificate, for servers that ask for one.
    public typealias ClientCertificate = HTTP2ClientTransport.Configuration.ClientCertificate
    /// For how long, and at which pace, failed calls are made again.
    public typealias RetryPolicy = RetrySchedule

    /// How to obtain access tokens.
    public var login: Login
    /// `https://host:port` of the Pub/Sub API. `http` for loopback hosts only, without TLS.
    public var endpoint = "https://api.pubsub.salesforce.com:7443"
    /// PEM file of the only authorities to trust, for the service and for logins; nil for those of the
    /// system.
    public var caFile: String?
    /// Nil for none.
    public var certificate: ClientCertificate?
    /// Nil to connect directly.
    public var proxy: Proxy?
    /// ID of the org, 15 or 18 characters; nil to take it from the login's answer.
    public var organizationID: String?
    /// Absolute path of the directory with the schemas that earlier processes have fetched; any number of
    /// processes share it. It is made when needed, its parent is not. Nil to keep schemas in memory only.
    public var schemaDirectory: String?
    /// By default, a failure that may pass is retried for 10 minutes, after pauses of 1 to 60 s; a
    /// response begins a new count. With `giveUpAfter` nil, a subscription resumes for ever.
    public var retry = RetryPolicy()
    /// Limit for calls with one answer.
    public var callTimeout = Duration.seconds(30)
    /// Receives each failure that is retried, and the pause before the next attempt. From any thread.
    public var onRetry: @Sendable (PubSubError, Duration) -> Void = { _, _ in }
    /// Receives, in a sentence, what the user should correct though a login worked. From any thread.
    public var onNotice: @Sendable (String) -> Void = { _ in }

    /// A configuration for Salesforce's own endpoint.
    ///
    /// - Parameter login: how to obtain access tokens.
    public init(login: Login) { self.login = login }

    func transport() throws(ConfigurationError) -> HTTP2ClientTransport.Configuration {
      let address = try ConfigurationError.address(self.endpoint, "endpoint")
      // A parsed port is from 1 to 65535.
      var transport = HTTP2ClientTransport.Configuration(
        host: address.host, port: UInt16(address.port),
        security: address.isSecure
          ? .tls(caFile: self.caFile, certificate: self.certificate) : .plaintext)
      transport.proxy = self.proxy
      return transport
    }

    var http: HTTPClient.Configuration {
      var http = HTTPClient.Configuration(caFile: self.caFile)
      http.certificate = self.certificate.map {
        HTTPClient.Configuration.Certificate(file: $0.certificateFile, keyFile: $0.keyFile)
      }
      http.proxy =
        self.proxy.map { proxy in
          .server(
            HTTPClient.Configuration.ProxyServer(
              host: proxy.host, port: Int(proxy.port), user: proxy.authorization?.user,
              password: proxy.authorization?.password))
        } ?? .none
      return http
    }
  }
}
