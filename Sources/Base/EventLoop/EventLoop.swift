import CSystem
package import Clocks
import Glibc

/// One thread that waits for sockets, timers and work from other threads.
///
/// Everything given to it (handlers, timers, work, jobs of tasks that prefer it) runs on that
/// thread, one after the other: state used only there needs no lock. None of it may block.
/// The thread ends when the object is released; handlers and timers that refer back to the object
/// are dropped by `stop`.
package final class EventLoop: TaskExecutor {
  /// The readiness of a socket. An error or hang-up of the peer counts as both.
  package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let readable = Readiness(rawValue: 1)
    package static let writable = Readiness(rawValue: 2)
  }

  /// Names a scheduled timer.
  package struct TimerID: Hashable, Sendable {
    fileprivate let value: UInt64
  }

  private let core: EventLoopCore

  /// - Parameters:
  ///   - name: of the thread, for debuggers; at most 15 bytes are kept.
  ///   - clock: by which its timers go.
  /// - Throws: when the system has no descriptors or no thread left.
  package init(name: String, clock: ProcessClock = ProcessClock()) throws(SystemCallError) {
    Self.ignoreBrokenPipes()
    let core = try EventLoopCore(clock: clock)
    self.core = core
    try Thread.detach(name: name) { core.run() }
  }

  deinit { self.core.post(.end) }

  /// The time that its timers go by.
  package var clock: ProcessClock { self.core.clock }

  /// Makes a write to a closed socket an error of that call instead of the end of the process.
  package static func ignoreBrokenPipes() { _ = Self.brokenPipesIgnored }
  private static let brokenPipesIgnored: Void = { signal(SIGPIPE, SIG_IGN) }()

  /// Whether the caller runs on the loop's thread.
  package var isCurrent: Bool { self.core.isCurrent }

  /// Runs `work` on the loop, after everything that was given before. From any thread.
  package func execute(_ work: @escaping @Sendable () -> Void) { self.core.post(.work(work)) }

  package func enqueue(_ job: consuming ExecutorJob) {
    self.core.post(.job(UnownedJob(job), self.asUnownedTaskExecutor()))
  }

  /// Drops all handlers and timers. Work and jobs are still run, so that no task is left hanging.
  package func stop() {
    self.execute { [core] in core.dropAll() }
  }

  // Only on the loop's thread:

  /// Calls `handler` whenever the socket is ready for what `interest` names, until `deregister`.
  /// An empty interest keeps the registration without waiting.
  package func register(
    _ descriptor: Int32, interest: Readiness, handler: @escaping (Readiness) -> Void
  ) throws(SystemCallError) {
    try self.core.register(descriptor, interest: interest, handler: handler)
  }

  /// Changes what the handler of `descriptor` waits for.
  package func update(_ descriptor: Int32, interest: Readiness) throws(SystemCallError) {
    try self.core.update(descriptor, interest: interest)
  }

  /// Ends the registration; to be called before the socket is closed.
  package func deregister(_ descriptor: Int32) { self.core.deregister(descriptor) }

  /// Runs `work` once, at or after `deadline`.
  @discardableResult
  package func schedule(
    at deadline: ContinuousClock.Instant, _ work: @escaping () -> Void
  ) -> TimerID {
    TimerID(value: self.core.schedule(at: deadline, work))
  }

  /// Cancels a timer; one that has run is ignored.
  package func cancel(_ timer: TimerID) { self.core.cancel(timer.value) }
}
