package import Clocks

extension Bucket {
  /// Repeats `body` after errors that may pass, for as long as the schedule allows.
  ///
  /// - Parameter onRetry: receives the error, and the pause before the next attempt.
  /// - Throws: the last error, with the number of attempts if there were several; the first error that
  ///   does not pass; `CancellationError`.
  package func retrying<Value>(
    _ schedule: RetrySchedule, onRetry: (ObjectStoreError, Duration) -> Void = { _, _ in },
    _ body: () async throws -> Value
  ) async throws -> Value {
    var retries = Retries(schedule)
    while true {
      do {
        return try await body()
      } catch var error as ObjectStoreError where error.isTransient {
        let now = self.clock.now
        guard
          let pause = retries.failed(
            at: now, minimum: error.retryAfter ?? .zero, random: .random(in: 0..<1))
        else {
          error.message += retries.verdict(at: now)
          throw error
        }
        onRetry(error, pause)
        try await self.clock.sleep(for: pause)
      }
    }
  }
}
