public import Clocks

extension ProcessClock {
  /// Timers of tasks that sleep while the clock is served.
  private static let sleepers: Result<EventLoop, SystemCallError> = {
    do throws(SystemCallError) { return .success(try EventLoop(name: "sleepers")) } catch {
      return .failure(error)
    }
  }()

  private struct Sleeper {
    var continuation: CheckedContinuation<Void, any Error>?
    var isCancelled = false
  }

  /// - Throws: `CancellationError`.
  public static func sleep(for duration: Duration) async throws {
    try await Self.sleep(until: Self.now + duration)
  }

  /// - Throws: `CancellationError`.
  public static func sleep(until deadline: ContinuousClock.Instant) async throws {
    guard Self.isServed else {
      return try await ContinuousClock().sleep(until: deadline)
    }
    let loop = try Self.sleepers.get()
    let state = Lock(Sleeper())
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isCancelled = state.withLock { state in
          if !state.isCancelled { state.continuation = continuation }
          return state.isCancelled
        }
        if isCancelled { return continuation.resume(throwing: CancellationError()) }
        loop.execute {
          loop.schedule(at: deadline) { Self.take(state)?.resume() }
        }
      }
    } onCancel: {
      // The timer stays, and finds nobody; nothing is skipped beyond it.
      let continuation = state.withLock { state in
        state.isCancelled = true
        return state.continuation.take()
      }
      continuation?.resume(throwing: CancellationError())
    }
  }

  private static func take(_ state: Lock<Sleeper>) -> CheckedContinuation<Void, any Error>? {
    state.withLock { $0.continuation.take() }
  }
}
