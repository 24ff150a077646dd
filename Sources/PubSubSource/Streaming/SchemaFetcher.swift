internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// What is heard of schemas that were asked for.
enum SchemaSignal: Sendable {
  /// The text of a schema, or why there will be none.
  case ended(id: String, Result<String, SourceFailure>)
  case retrying(SourceFailure, delay: Duration)
  case interrupted
}

/// Asks for schemas until there is an answer: an event without its schema must not be skipped.
///
/// Runs beside the runner, which goes on committing and may end the run meanwhile.
struct SchemaFetcher<Transport: ClientTransport>: Sendable {
  let client: PubSubClient<Transport>
  let credentials: any CredentialsSource
  let options: PubSubSourceOptions
  let signals: SignalQueue<SchemaSignal>
  var clock = StreamClock.continuous

  /// Cancelled when the run is over.
  func run(_ id: String) async {
    do throws(SourceFailure) {
      self.signals.post(.ended(id: id, .success(try await self.text(id))))
    } catch {
      self.signals.post(.ended(id: id, .failure(error)))
    }
  }

  private func text(_ id: String) async throws(SourceFailure) -> String {
    var retries = RetryPolicy(limit: self.options.maxRetries)
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
        var minimum = Duration.zero
        switch error.disposition(sentReplayID: false) {
        case .retry(let delay): minimum = delay
        case .reauthenticate:
          refusals += 1
          guard let used, await self.credentials.refused(used),
            refusals < StreamAuthorization.maxRefusals
          else { throw error.refusedForGood(options: self.options) }
        case .quota: throw error.failure(.quota, options: self.options)
        case .bug: throw error.failure(.bug, options: self.options)
        default: throw error.failure(.refused, options: self.options)
        }
        let failure = error.failure(.unavailable, options: self.options)
        guard failure.disposition != .configuration,
          let delay = retries.failed(minimum: minimum, random: .random(in: 0..<1))
        else { throw failure }
        self.signals.post(.retrying(failure, delay: delay))
        await self.clock.sleep(self.clock.now() + delay)
        // Nobody waits for the schema any more.
        if Task.isCancelled { throw failure }
      }
    }
  }
}
