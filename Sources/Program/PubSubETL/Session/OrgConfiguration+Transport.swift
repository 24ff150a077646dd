import Clocks
import HTTP2Transport
import HTTPClient

extension OrgConfiguration {
  /// The connection to the Pub/Sub API. Nothing is connected yet.
  func transport(clock: ProcessClock) throws -> HTTP2ClientTransport {
    let certificate = self.tls.identity.map {
      HTTP2ClientTransport.Configuration.ClientCertificate(
        certificateFile: $0.certificateFile, keyFile: $0.keyFile)
    }
    // Ports are from 1 to 65535; other pipeline files are refused earlier.
    var configuration = HTTP2ClientTransport.Configuration(
      host: self.endpoint.host, port: UInt16(self.endpoint.port),
      security: self.endpoint.isSecure
        ? .tls(caFile: self.tls.caFile, certificate: certificate) : .plaintext)
    configuration.clock = clock
    configuration.proxy = self.proxy.proxy(for: self.endpoint).map { proxy in
      HTTP2ClientTransport.Configuration.Proxy(
        host: proxy.host, port: UInt16(proxy.port),
        authorization: proxy.authorization.map { .init(user: $0.user, password: $0.password.value) }
      )
    }
    return try HTTP2ClientTransport(configuration: configuration)
  }
}
