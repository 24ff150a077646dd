private import Glibc
internal import Synchronization

/// The time that this process goes by: the machine's clocks, or those of somebody who skips idle waits.
///
/// Everything that takes time is handed one, so that a rehearsal can skip the waits. Instants are those of
/// `ContinuousClock`, later by what was skipped.
package struct ProcessClock: Sendable {
  /// Nobody skips anything without one.
  package let service: (any TimeService)?

  /// The machine's clocks.
  package init() { self.service = nil }

  /// The clocks of `service`.
  package init(_ service: any TimeService) { self.service = service }

  package var now: ContinuousClock.Instant {
    guard let service else { return ContinuousClock.now }
    return ContinuousClock.now + service.skipped
  }

  /// What was skipped, for clocks that measure time passing.
  package var skipped: Duration { self.service?.skipped ?? .zero }

  /// The wall clock, in milliseconds since 1970.
  package var wallTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
      + (self.service?.wallOffset ?? 0)
  }

  /// When to look again for something that nobody announces, such as a stop.
  package func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant {
    self.service?.nextLook(from: now, after: usual) ?? now + usual
  }

  /// - Throws: `CancellationError`.
  package func sleep(for duration: Duration) async throws {
    try await self.sleep(until: self.now + duration)
  }

  /// - Throws: `CancellationError`.
  package func sleep(until deadline: ContinuousClock.Instant) async throws {
    guard let service else { return try await ContinuousClock().sleep(until: deadline) }
    try await service.sleep(until: deadline)
  }

  /// Runs `body`, during which something that has no part in a served time may be at work: a database, a
  /// web server, a child process. No time is skipped until it returns.
  package func waitingForOthers<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    self.service?.beginWait()
    defer { self.service?.endWait() }
    return try body()
  }

  /// Runs `body`, which waits for this process itself, in the middle of `waitingForOthers`.
  package func waitingForOurselves<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    self.service?.endWait()
    defer { self.service?.beginWait() }
    return try body()
  }
}

extension ProcessClock: Equatable {
  package static func == (left: Self, right: Self) -> Bool { left.service === right.service }
}
