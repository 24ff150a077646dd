package import Clocks
internal import GRPCCore

/// A call with one answer, repeated as long as that may help.
package struct PersistentCall: Sendable {
  /// Why a call is not repeated.
  package enum Verdict: Sendable {
    /// Nobody waits for the answer any longer.
    case cancelled
    /// The server could not prove its identity, and will not do so in a minute.
    case untrustedPeer
    /// New tokens are refused as well.
    case tokensRefused
    /// The schedule's time is used up.
    case gaveUp(Retries, at: ContinuousClock.Instant)
    /// The same call would get the same answer.
    case final(PubSubError.Disposition)
  }

  package struct Failure: Error {
    /// The error of the last attempt.
    package var error: PubSubError
    package var verdict: Verdict
  }

  private let credentials: any CredentialsSource
  private let schedule: RetrySchedule
  private let isIdentityError: @Sendable (any Error) -> Bool
  private let clock: StreamClock

  /// - Parameter isIdentityError: whether a call failed because the server could not prove its
  ///   identity.
  package init(
    credentials: any CredentialsSource, schedule: RetrySchedule,
    isIdentityError: @escaping @Sendable (any Error) -> Bool,
    clock: StreamClock = StreamClock(ProcessClock())
  ) {
    self.credentials = credentials
    self.schedule = schedule
    self.isIdentityError = isIdentityError
    self.clock = clock
  }

  /// - Parameters:
  ///   - operation: the request, such as `GetSchema 9oaS…`.
  ///   - onRetry: called before each pause.
  package func make<Answer>(
    _ operation: String, onRetry: (PubSubError, _ delay: Duration) -> Void = { _, _ in },
    _ call: (Credentials) async throws -> Answer
  ) async throws(Failure) -> Answer {
    var retries = Retries(self.schedule)
    var refusals = 0
    while true {
      var used: Credentials?
      let began = self.clock.now()
      do {
        let credentials = try await self.credentials.credentials()
        used = credentials
        let answer = try await call(credentials)
        await self.credentials.worked(credentials)
        return answer
      } catch {
        let error = PubSubError(error, operation: operation)
        if Task.isCancelled { throw Failure(error: error, verdict: .cancelled) }
        var minimum = Duration.zero
        switch error.disposition(sentReplayID: false) {
        case .retry(let delay): minimum = delay
        case .reauthenticate:
          refusals += 1
          guard let used, await self.credentials.refused(used),
            refusals < StreamAuthorization.maxRefusals
          else { throw Failure(error: error, verdict: .tokensRefused) }
        case .quota where self.schedule.giveUpAfter == nil: minimum = PubSubError.quotaDelay
        case let other: throw Failure(error: error, verdict: .final(other))
        }
        if let cause = error.cause, self.isIdentityError(cause) {
          throw Failure(error: error, verdict: .untrustedPeer)
        }
        let now = self.clock.now()
        let isUnanswered = error.status == .deadlineExceeded
        guard
          let delay = retries.failed(
            at: now, silence: isUnanswered ? began : nil, minimum: minimum,
            random: .random(in: 0..<1))
        else { throw Failure(error: error, verdict: .gaveUp(retries, at: now)) }
        onRetry(error, delay)
        await self.clock.sleep(self.clock.now() + delay)
        if Task.isCancelled { throw Failure(error: error, verdict: .cancelled) }
      }
    }
  }
}
