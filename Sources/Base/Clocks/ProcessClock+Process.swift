internal import Synchronization

extension ProcessClock {
  private static let isGiven = Atomic<Bool>(false)
  // Guard: written once, before `isGiven`.
  nonisolated(unsafe) private static var given = ProcessClock()

  /// The clock of whatever is not handed one.
  public static var process: ProcessClock {
    Self.isGiven.load(ordering: .acquiring) ? Self.given : ProcessClock()
  }

  /// To be called once, before anything takes time.
  package static func goBy(_ clock: ProcessClock) {
    Self.given = clock
    Self.isGiven.store(true, ordering: .releasing)
  }

  public static var now: ContinuousClock.Instant { Self.process.now }
  package static var skippedTime: Duration { Self.process.skipped }
  public static var wallOffset: Int64 { Self.process.service?.wallOffset ?? 0 }
  package static func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant { Self.process.nextLook(from: now, after: usual) }
  package static func sleep(for duration: Duration) async throws {
    try await Self.process.sleep(for: duration)
  }
  package static func sleep(until deadline: ContinuousClock.Instant) async throws {
    try await Self.process.sleep(until: deadline)
  }
  package static func waitingForOthers<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result { try Self.process.waitingForOthers(body) }
  package static func waitingForOurselves<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result { try Self.process.waitingForOurselves(body) }
}
