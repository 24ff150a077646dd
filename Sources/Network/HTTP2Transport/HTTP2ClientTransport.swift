internal import EventLoop
public import GRPCCore

/// gRPC over HTTP/2 to one server: libnghttp2 for the frames, OpenSSL for TLS.
///
/// All streams share one connection, which is made when the first stream asks for it and made again
/// after it was lost. Open streams of a lost connection fail with `unavailable`; what the server has
/// certainly not looked at is sent again. Errors are `RPCError`; when a connection attempt fails, the
/// `cause` is a `TLSError`, whose `needsIntervention` tells that trying again will not help. An error
/// whose `isUnprocessed` is true left nothing done on the server; one whose `isRefusal` is true has the
/// server's own status.
///
/// Messages are `[UInt8]` of exactly their size, which a deserializer may keep without a copy.
public final class HTTP2ClientTransport: ClientTransport {
  /// Messages, without their prefix.
  public typealias Bytes = [UInt8]

  private struct State {
    var isShutDown = false
    var nextKey: ReceiveWindows.Key = 0
  }

  private let connections: Connections
  private let state = Lock(State())

  /// None: retries by policy are not limited here.
  public let retryThrottle: RetryThrottle? = nil

  /// - Throws: `TLSError` with the code `badConfiguration` when the trusted or the own certificates
  ///   cannot be read, or a name cannot be one; `SystemCallError` when the system has no descriptors
  ///   or no thread left. Nothing is connected yet.
  public init(configuration: Configuration) throws {
    self.connections = try Connections(configuration: configuration)
  }

  /// The thread that moves the bytes, as an executor: a task that prefers it reads its responses
  /// without a change of thread. For work that never blocks.
  public var executor: any TaskExecutor { self.connections.loop }

  /// Serves streams until `beginGracefulShutdown` and the end of all streams, or until the task is
  /// cancelled, which breaks streams off. To be called once.
  public func connect() async throws {
    await withTaskCancellationHandler {
      await withCheckedContinuation { (runner: CheckedContinuation<Void, Never>) in
        self.connections.post { $0.run(runner) }
      }
    } onCancel: {
      self.state.withLock { $0.isShutDown = true }
      self.connections.post { $0.kill() }
    }
  }

  /// Lets open streams finish and refuses new ones; `connect()` returns when the last has ended. From any
  /// thread, any number of times.
  public func beginGracefulShutdown() {
    let wasShutDown = self.state.withLock { state in
      defer { state.isShutDown = true }
      return state.isShutDown
    }
    if !wasShutDown { self.connections.post { $0.shutDown() } }
  }

  /// The stream is opened when its metadata is written; without a connection it waits for one, or
  /// for `connect()` to be called. Its failure to open is thrown where its response is read.
  public func withStream<Result: Sendable>(
    descriptor: MethodDescriptor, options: CallOptions,
    _ closure: (_ stream: RPCStream<Inbound, Outbound>, _ context: ClientContext) async throws ->
      Result
  ) async throws -> Result {
    let configuration = self.connections.configuration
    // Posted inside the lock: a shutdown that comes later finds the stream counted.
    let key: ReceiveWindows.Key? = self.state.withLock { state in
      guard !state.isShutDown else { return nil }
      state.nextKey += 1
      self.connections.post { $0.streamBegan() }
      return state.nextKey
    }
    guard let key else { throw RPCError.shutDown().unprocessed() }
    let stream = ClientStream(
      key: key, path: "/\(descriptor.fullyQualifiedMethod)", options: options,
      maxMessageBytes: configuration.maxMessageBytes, connections: self.connections)
    defer { stream.release() }
    return try await closure(
      RPCStream(
        descriptor: descriptor,
        inbound: RPCAsyncSequence(wrapping: ResponseParts(stream: stream)),
        outbound: RPCWriter.Closable(wrapping: RequestWriter(stream: stream))),
      ClientContext(
        descriptor: descriptor, remotePeer: configuration.endpoint, localPeer: "client"))
  }

  /// None: options come from the caller.
  public func config(forMethod descriptor: MethodDescriptor) -> MethodConfig? { nil }
}
