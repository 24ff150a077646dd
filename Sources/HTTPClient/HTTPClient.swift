internal import Glibc

/// Small HTTPS requests: logins and REST.
///
/// Each request has a thread and a curl handle of its own, so any number may run at once and none
/// holds a thread of Swift's pool. Redirects are not followed (a 3xx is an answer), so a secret
/// goes to the host it was meant for only. Proxies as the environment says (`https_proxy`,
/// `no_proxy`); plain requests to loopback use none.
public final class HTTPClient: Sendable {
  public struct Configuration: Sendable {
    /// PEM file of the only certificates to trust; nil for those of the system.
    public var caFile: String?
    public var connectTimeout: Duration
    /// For the whole request.
    public var timeout: Duration
    /// After decompression.
    public var maxBodyBytes: Int
    public var userAgent: String

    public init(
      caFile: String? = nil, connectTimeout: Duration = .seconds(15),
      timeout: Duration = .seconds(60), maxBodyBytes: Int = 16 << 20,
      userAgent: String = "pubsub-etl"
    ) {
      self.caFile = caFile
      self.connectTimeout = connectTimeout
      self.timeout = timeout
      self.maxBodyBytes = maxBodyBytes
      self.userAgent = userAgent
    }
  }

  private let configuration: Configuration
  private let trust: TrustStore

  public init(_ configuration: Configuration = Configuration()) {
    self.configuration = configuration
    self.trust = TrustStore(caFile: configuration.caFile)
  }

  /// Sends the request and returns the answer, whatever its status.
  ///
  /// Throws `HTTPError`, or `CancellationError` when the task is cancelled (within a second).
  public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let url = try HTTPURL(checking: request)
    let transfer = CurlTransfer(
      request: request, url: url, configuration: self.configuration, trust: self.trust)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        Thread.start { continuation.resume(with: Result { try transfer.perform() }) }
      }
    } onCancel: {
      transfer.cancel()
    }
  }
}

/// A detached thread that runs one closure.
private enum Thread {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @Sendable @escaping () -> Void) { self.run = run }
  }

  static func start(_ run: @Sendable @escaping () -> Void) {
    var thread = pthread_t()
    let body = Unmanaged.passRetained(Body(run))
    let result = pthread_create(
      &thread, nil,
      { argument in
        // `start` passes a retained Body, never null.
        guard let argument else { return nil }
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, body.toOpaque())
    // Out of threads means out of memory.
    precondition(result == 0, "pthread_create: \(result)")
    pthread_detach(thread)
  }
}
