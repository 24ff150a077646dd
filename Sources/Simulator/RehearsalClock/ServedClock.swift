internal import Clocks
internal import EventLoop
internal import Glibc
internal import Synchronization

/// The clock of a rehearsal: the simulator skips the waits in which nothing happens, its own and those of the
/// programs that it talks to.
///
/// Time passes as on the machine while anything works. When every thread of every participant sleeps and no
/// byte is on its way, all of them would wait for the earliest deadline of any; the simulator then tells all to
/// skip the time up to it. How that is known without races:
///
/// 1. `probe`: the program answers `quiet MARK DEADLINE` when its threads sleep, else `busy` (`Quiescence`).
/// 2. The simulator, all of whose programs were quiet, looks at itself in the same way, twice.
/// 3. It probes the programs again. Equal marks: no thread of theirs ran between the two probes. So there was an
///    instant, that of step 2, at which nothing ran and nothing was on its way anywhere.
/// 4. From such an instant on only a deadline, or somebody outside, can wake a thread. `skip MILLISECONDS`
///    moves all clocks to the earliest deadline. If a deadline passes on its own between steps 3 and 4, the
///    clock gets ahead by the duration of these steps: as if a thread had been scheduled late.
///
/// Outsiders are counted: a process that waits for a database, a web server or a child process is busy
/// (`ProcessClock.waitingForOthers`). Where `/proc` is not readable, nothing is skipped.
package final class ServedClock: TimeService {
  private struct Sleeper {
    var continuation: CheckedContinuation<Void, any Error>?
    var isCancelled = false
  }

  /// Milliseconds from the machine's wall clock to the served one, at the start.
  private let wallShift: Int64
  private let start = ContinuousClock.now
  private let skippedNanoseconds = Atomic<Int64>(0)
  private let externalWaits = Atomic<Int>(0)
  private let loops = WatchedLoops()
  /// Timers of tasks that sleep. Made when the first one does.
  private let sleepers = Lock<EventLoop?>(nil)

  package init(wallShift: Int64) { self.wallShift = wallShift }

  package var skipped: Duration {
    .nanoseconds(self.skippedNanoseconds.load(ordering: .relaxed))
  }

  package var wallOffset: Int64 {
    self.wallShift + self.skippedNanoseconds.load(ordering: .relaxed) / 1_000_000
  }

  /// Every look costs a skip, so all look together, at whole seconds: a stop is noticed up to a second later.
  package func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant {
    guard usual <= .seconds(1) else { return now + usual }
    let sinceStart = now - self.start
    return now + (.seconds(sinceStart.components.seconds + 1) - sinceStart)
  }

  /// Moves both clocks on.
  package func skip(milliseconds: Int64) {
    self.skippedNanoseconds.wrappingAdd(milliseconds * 1_000_000, ordering: .relaxed)
    self.loops.wakeAll()
  }

  // MARK: Waits

  package func beginWait() {
    self.externalWaits.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }

  package func endWait() {
    self.externalWaits.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  private var waitsForOthers: Bool {
    self.externalWaits.load(ordering: .sequentiallyConsistent) > 0
  }

  package func loopBegins(wake: @escaping @Sendable () -> Void) -> Int {
    self.loops.register(wake: wake)
  }

  package func loopEnds(_ loop: Int) { self.loops.unregister(loop) }

  package func loop(_ loop: Int, waitsUntil deadline: ContinuousClock.Instant?) {
    self.loops.announce(loop, deadline)
  }

  package func loopsWatch(_ descriptor: Int32) { self.loops.add(descriptor) }
  package func loopsIgnore(_ descriptor: Int32) { self.loops.remove(descriptor) }

  /// A mark of all threads of this process; nil when one of them runs or waits for a disk, when bytes are on
  /// their way, or while the process waits for something outside the served time.
  package func quietMark() -> [UInt64]? {
    guard !self.waitsForOthers,
      let mark = Quiescence.sample(sockets: { self.loops.descriptors }), !self.waitsForOthers
    else { return nil }
    return mark
  }

  /// Milliseconds until this process does something by itself, rounded up; nil when it never will.
  package var millisecondsToDeadline: Int64? {
    self.loops.earliest.map { deadline in
      let (seconds, attoseconds) = (deadline - ProcessClock(self).now).components
      return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
  }

  // MARK: Sleeping

  package func sleep(until deadline: ContinuousClock.Instant) async throws {
    let loop = try self.sleepingLoop()
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

  private func sleepingLoop() throws -> EventLoop {
    try self.sleepers.withLock { loop in
      if let loop { return loop }
      let made = try EventLoop(name: "sleepers", clock: ProcessClock(self))
      loop = made
      return made
    }
  }

  private static func take(_ state: Lock<Sleeper>) -> CheckedContinuation<Void, any Error>? {
    state.withLock { $0.continuation.take() }
  }
}
