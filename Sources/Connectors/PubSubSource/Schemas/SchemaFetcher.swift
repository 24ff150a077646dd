internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// Requests a schema until there is an answer, because an event without its schema must not be
/// skipped.
struct SchemaFetcher<Transport: ClientTransport>: Sendable {
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  let options: PubSubSourceOptions
  var clock: StreamClock

  /// - Parameter onRetry: called before each wait for another attempt.
  /// - Returns: the schema's JSON text.
  /// - Throws: why there will be no schema, also if the task is cancelled.
  func fetch(
    _ id: String, onRetry: (SourceFailure, _ delay: Duration) -> Void
  ) async throws(SourceFailure) -> String {
    let call = PersistentCall(
      credentials: self.credentials, schedule: self.options.retry,
      isIdentityError: self.options.isIdentityError, clock: self.clock)
    do throws(PersistentCall.Failure) {
      return try await call.make(
        "GetSchema \(id)",
        onRetry: { onRetry($0.failure(.unavailable, options: self.options), $1) },
        { try await self.client.schema(id: id, credentials: $0).json })
    } catch {
      throw error.failure(options: self.options)
    }
  }
}
