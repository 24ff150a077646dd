internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// Asks for a schema until there is an answer: an event without its schema must not be skipped.
struct SchemaFetcher<Transport: ClientTransport>: Sendable {
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  let options: PubSubSourceOptions
  var clock = StreamClock.continuous

  /// - Parameter onRetry: called before each wait for another attempt.
  /// - Returns: the schema's JSON text.
  /// - Throws: why there will be none, also when the task is cancelled.
  func fetch(
    _ id: String, onRetry: (SourceFailure, _ delay: Duration) -> Void
  ) async throws(SourceFailure) -> String {
    var retries = Retries(self.options.retry)
    var refusals = 0
    while true {
      var used: Credentials?
      do {
        let credentials = try await self.credentials.credentials()
        used = credentials
        let json = try await self.client.schema(id: id, credentials: credentials).json
        await self.credentials.worked(credentials)
        return json
      } catch {
        let error = PubSubError(error, operation: "GetSchema \(id)")
        let failure = error.failure(.unavailable, options: self.options)
        // The stream is over: nobody waits for the schema any more.
        if Task.isCancelled { throw failure }
        var minimum = Duration.zero
        switch error.disposition(sentReplayID: false) {
        case .retry(let delay): minimum = delay
        case .reauthenticate:
          refusals += 1
          guard let used, await self.credentials.refused(used),
            refusals < StreamAuthorization.maxRefusals
          else { throw error.refusedForGood(options: self.options) }
        case .quota:
          guard self.options.retry.giveUpAfter == nil else {
            throw error.failure(.quota, options: self.options)
          }
          minimum = PubSubError.quotaDelay
        case .bug: throw error.failure(.bug, options: self.options)
        default: throw error.failure(.refused, options: self.options)
        }
        guard failure.disposition != .configuration else { throw failure }
        let now = self.clock.now()
        guard let delay = retries.failed(at: now, minimum: minimum, random: .random(in: 0..<1))
        else { throw error.failure(givingUp: retries, at: now, options: self.options) }
        onRetry(failure, delay)
        await self.clock.sleep(self.clock.now() + delay)
        if Task.isCancelled { throw failure }
      }
    }
  }
}
