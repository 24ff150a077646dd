package import Clocks
internal import EventLoop

/// HTTPS requests: logins, REST and object stores.
///
/// Each request has a thread and a curl handle of its own, so any number may run at once and none
/// holds a thread of Swift's pool. Redirects are not followed (a 3xx is an answer), so a secret
/// goes to the host it was meant for only. Plain requests, which go to loopback, use no proxy.
package final class HTTPClient: Sendable {
  package struct Configuration: Sendable {
    /// PEM file of the only certificates to trust; nil for those of the system.
    package var caFile: String?
    /// Shown to a server that asks for it.
    package var certificate: Certificate?
    package var proxy = Proxy.environment
    package var connectTimeout: Duration
    /// For the whole request of `send`, unless its body comes from a source.
    package var timeout: Duration
    /// For `stream`, and for bodies from a source: how long fewer than `minBytesPerSecond` may be
    /// transferred. Time in which the caller does not take what was received does not count.
    package var stallTimeout: Duration
    /// What a server sends at least that has not stalled. No line is so slow.
    package var minBytesPerSecond = 1000
    /// The limit for bodies that `send` returns, after decompression.
    package var maxBodyBytes: Int
    package var userAgent: String
    /// Receives each exchange when it has ended. Called from any thread; must not block.
    package var onExchange: (@Sendable (HTTPExchange) -> Void)?
    /// The time that whoever uses the client goes by.
    package var clock = ProcessClock()

    package init(
      caFile: String? = nil, connectTimeout: Duration = .seconds(15),
      timeout: Duration = .seconds(60), stallTimeout: Duration = .seconds(60),
      maxBodyBytes: Int = 16 << 20, userAgent: String = "pubsub-etl"
    ) {
      self.caFile = caFile
      self.connectTimeout = connectTimeout
      self.timeout = timeout
      self.stallTimeout = stallTimeout
      self.maxBodyBytes = maxBodyBytes
      self.userAgent = userAgent
    }

    /// PEM files: a chain that begins with the own certificate, and its key without passphrase,
    /// which may be one file.
    package struct Certificate: Sendable, Hashable {
      package var file: String
      package var keyFile: String

      package init(file: String, keyFile: String) {
        self.file = file
        self.keyFile = keyFile
      }
    }

    package enum Proxy: Sendable {
      /// What the environment says (`https_proxy`, `no_proxy`), in curl's reading.
      case environment
      case none
      /// For every secure request.
      case server(ProxyServer)
    }

    /// An HTTP proxy that opens tunnels (CONNECT). Prints without user and password.
    package struct ProxyServer: Sendable, CustomStringConvertible, CustomReflectable {
      /// A name or an address; IPv6 without brackets.
      package var host: String
      package var port: Int
      /// Basic authentication (RFC 7617); nil for none.
      package var user: String?
      package var password: String?

      package init(host: String, port: Int, user: String? = nil, password: String? = nil) {
        (self.host, self.port, self.user, self.password) = (host, port, user, password)
      }

      var url: String {
        "http://" + (self.host.contains(":") ? "[\(self.host)]" : self.host) + ":\(self.port)"
      }
      package var description: String { self.url }
      package var customMirror: Mirror { Mirror(self, children: ["url": self.url]) }
    }
  }

  private let configuration: Configuration
  package var clock: ProcessClock { self.configuration.clock }
  private let trust: CertificatePaths

  package init(_ configuration: Configuration = Configuration()) {
    self.configuration = configuration
    self.trust = CertificatePaths(caFile: configuration.caFile)
  }

  /// Sends the request and returns the answer, whatever its status.
  ///
  /// Throws `HTTPError`, or `CancellationError` when the task is cancelled (within a second), or what
  /// the source of the body throws.
  ///
  /// - Parameter maxBodyBytes: nil for that of the configuration.
  package func send(
    _ request: HTTPRequest, maxBodyBytes: Int? = nil
  ) async throws -> HTTPResponse {
    let collector = ResponseCollector(
      request, maxBodyBytes: maxBodyBytes ?? self.configuration.maxBodyBytes)
    let timeLimit: CurlTransfer.TimeLimit =
      request.source == nil
      ? .total(self.configuration.timeout) : .stall(self.configuration.stallTimeout)
    let transfer = try self.transfer(request, timeLimit, receiver: collector)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        do {
          try Thread.detach(name: "https") {
            continuation.resume(
              with: Result {
                try transfer.perform()
                return collector.response
              })
          }
        } catch {
          continuation.resume(throwing: HTTPError(.system, "\(request): \(error)"))
        }
      }
    } onCancel: {
      transfer.cancel()
    }
  }

  /// Sends the request and returns the answer, whatever its status, as soon as its headers are
  /// there. The body, of any size, is received as the caller asks for it.
  ///
  /// Throws as `send`. Of the configuration, `stallTimeout` counts instead of `timeout` and
  /// `maxBodyBytes`.
  package func stream(_ request: HTTPRequest) async throws -> HTTPBodyStream {
    try await self.stream(request, through: BodyQueue())
  }

  func stream(_ request: HTTPRequest, through queue: BodyQueue) async throws -> HTTPBodyStream {
    let transfer = try self.transfer(
      request, .stall(self.configuration.stallTimeout), receiver: queue)
    let response = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        queue.expectHead(continuation)
        do {
          try Thread.detach(name: HTTPBodyStream.threadName) {
            queue.end(Result { try transfer.perform() })
          }
        } catch {
          queue.end(.failure(HTTPError(.system, "\(request): \(error)")))
        }
      }
    } onCancel: {
      transfer.cancel()
    }
    return HTTPBodyStream(response: response, queue: queue, transfer: transfer)
  }

  private func transfer(
    _ request: HTTPRequest, _ timeLimit: CurlTransfer.TimeLimit, receiver: any ResponseReceiver
  ) throws(HTTPError) -> CurlTransfer {
    CurlTransfer(
      request: request, url: try HTTPURL(checking: request), configuration: self.configuration,
      trust: self.trust, timeLimit: timeLimit, receiver: receiver)
  }
}
