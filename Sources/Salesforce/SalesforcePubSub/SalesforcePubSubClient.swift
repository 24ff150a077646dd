internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import HTTP2Transport
internal import HTTPClient
public import PubSubAPI
internal import SalesforceAuth
internal import TLSStream

/// A client of the Salesforce Pub/Sub API: one connection, one login, the schemas that it has seen.
///
/// ```swift
/// try await SalesforcePubSubClient.with(configuration) { client in
///   for try await event in client.events(of: "/event/Order_Event__e", after: .earliest) {
///     print(try await event.json())
///   }
/// }
/// ```
///
/// The connection is made with the first call, and again after it was lost. Tokens that the service
/// refuses are replaced. Calls fail with `PubSubError`, whose `disposition(sentReplayID:)` says what
/// to do. From any task.
public final class SalesforcePubSubClient: Sendable {
  private let grpc: GRPCClient<HTTP2ClientTransport>
  private let service: PubSubClient<HTTP2ClientTransport>
  private let login: Login.Source
  private let calls: PersistentCall
  private let schemas: EventSchemas
  private let retry: Configuration.RetryPolicy
  private let onRetry: @Sendable (PubSubError, Duration) -> Void
  /// Subscriptions that are to be run.
  private let openings = AsyncStream.makeStream(of: EventStream<HTTP2ClientTransport>.self)

  /// A client that connects and logs in with its first call, once `run()` is running.
  ///
  /// - Throws: `ConfigurationError` when a setting, a key or a certificate cannot be used;
  ///   `SystemCallError` when the system has no descriptors or no thread left.
  public init(_ configuration: Configuration) throws {
    let login = try configuration.login.source(
      HTTPClient(configuration.http), organizationID: configuration.organizationID,
      onNotice: configuration.onNotice)
    do {
      self.grpc = GRPCClient(
        transport: try HTTP2ClientTransport(configuration: try configuration.transport()))
    } catch let error as TLSError {
      throw ConfigurationError("\(error)")
    }
    let service = PubSubClient(self.grpc, unaryTimeout: configuration.callTimeout)
    let calls = PersistentCall(
      credentials: login.credentials, schedule: configuration.retry,
      isIdentityError: Self.isIdentityError)
    self.service = service
    self.login = login
    self.calls = calls
    self.retry = configuration.retry
    self.onRetry = configuration.onRetry
    self.schemas = EventSchemas(
      directory: configuration.schemaDirectory,
      organizationID: { try await login.credentials.credentials().tenantID },
      fetch: { [onRetry = configuration.onRetry] id in
        try await Self.make("GetSchema \(id)", calls, onRetry) {
          try await service.schema(id: id, credentials: $0).json
        }
      })
  }

  /// Runs a client while `body` uses it, then ends its subscriptions and closes its connection.
  ///
  /// - Parameters:
  ///   - configuration: of the client.
  ///   - isolation: the actor on which `body` runs.
  ///   - body: what to do with the client.
  /// - Returns: what `body` returns.
  /// - Throws: as `init(_:)`, and what `body` throws.
  public static func with<Result>(
    _ configuration: Configuration, isolation: isolated (any Actor)? = #isolation,
    _ body: (SalesforcePubSubClient) async throws -> Result
  ) async throws -> Result {
    let client = try SalesforcePubSubClient(configuration)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await client.run() }
      let result: Result
      do {
        result = try await body(client)
      } catch {
        client.shutDown()
        throw error
      }
      client.shutDown()
      try await group.waitForAll()
      return result
    }
  }

  /// Serves calls and subscriptions until `shutDown()` and the end of all calls, or until the task is
  /// cancelled, which breaks calls off. To be called once; calls wait for it.
  public func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [grpc] in try await grpc.runConnections() }
      await withDiscardingTaskGroup { streams in
        for await stream in self.openings.stream {
          streams.addTask { await stream.run() }
        }
        streams.cancelAll()
      }
      self.grpc.beginGracefulShutdown()
      try await group.waitForAll()
    }
    // A login that replaces its own secret must not be torn.
    if case .provider(let provider) = self.login { await provider.settle(within: .seconds(10)) }
  }

  /// Ends all subscriptions, and `run()` when the last call has ended. Later calls fail, and later
  /// subscriptions are empty. From any thread.
  public func shutDown() { self.openings.continuation.finish() }

  /// The events of a topic. Nothing is requested before the sequence is iterated.
  ///
  /// - Parameters:
  ///   - topic: such as `/event/Order_Event__e` or `/data/AccountChangeEvent`.
  ///   - start: where to begin.
  ///   - window: events to have outstanding or waiting at most, clamped to 1…100. Events count against
  ///     the org's delivery allowance when they are delivered, consumed or not.
  public func events(of topic: String, after start: Events.Start, window: Int = 100) -> Events {
    Events { [service, login, schemas, retry, onRetry, openings] in
      let stream = EventStream(
        topic: topic, start: start.position, window: window, client: service,
        credentials: login.credentials, schemas: schemas, retry: retry,
        isIdentityError: Self.isIdentityError, onRetry: onRetry)
      if case .enqueued = openings.continuation.yield(stream) { return stream }
      // The client was shut down.
      stream.finish()
      return stream
    }
  }

  /// What the service knows of a topic: whether the user may subscribe and publish to it, and the ID of
  /// its schema.
  ///
  /// Throws `PubSubError`, and `CancellationError`.
  public func topic(named name: String) async throws -> TopicInformation {
    try await Self.make("GetTopic \(name)", self.calls, self.onRetry) {
      try await self.service.topic(named: name, credentials: $0)
    }
  }

  /// A schema by its ID: from memory, from the configured directory, or from the service.
  ///
  /// Throws `PubSubError`, `AvroError` when its text is not a schema, and `CancellationError`.
  public func schema(id: String) async throws -> EventSchema { try await self.schemas.schema(id) }

  private static let isIdentityError: @Sendable (any Error) -> Bool = {
    ($0 as? TLSError)?.needsIntervention == true
  }

  private static func make<Answer>(
    _ operation: String, _ calls: PersistentCall,
    _ onRetry: (PubSubError, Duration) -> Void, _ call: (Credentials) async throws -> Answer
  ) async throws -> Answer {
    do throws(PersistentCall.Failure) {
      return try await calls.make(operation, onRetry: onRetry, call)
    } catch {
      if case .cancelled = error.verdict { throw CancellationError() }
      throw error.reported
    }
  }
}

extension PersistentCall.Failure {
  /// The last error, with the duration of the retries.
  var reported: PubSubError {
    guard case .gaveUp(let retries, let time) = self.verdict else { return self.error }
    var error = self.error
    error.message += retries.verdict(at: time, setting: "retry.giveUpAfter")
    return error
  }
}

extension Events.Start {
  var position: Subscription.Position {
    switch self {
    case .latest: .latest
    case .earliest: .earliest
    case .replayID(let id): .after(id)
    }
  }
}
