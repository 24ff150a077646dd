internal import Glibc
internal import Synchronization

/// The signal that came while signals were postponed; 0 for none.
private let postponed = Atomic<Int32>(0)
/// Whether signals are postponed. A handler that has begun may run on after they no longer are; then
/// it ends the process itself.
private let isPostponing = Atomic<Bool>(false)

/// Puts SIGINT, SIGTERM and SIGHUP off where they would end the process at once, for work that must not be torn: the
/// answer of a service that replaces a secret, until the new one is stored.
///
/// A process that watches its signals keeps its handlers, and nothing changes for it. The second signal
/// ends the process in any case, with 128 and its number.
package enum PostponedSignals {
  private typealias Handler = @convention(c) (Int32) -> Void

  private static let handler: Handler = { number in
    if postponed.exchange(number, ordering: .sequentiallyConsistent) != 0 { _exit(128 + number) }
    if !isPostponing.load(ordering: .sequentiallyConsistent) {
      signal(number, SIG_DFL)
      kill(getpid(), number)
    }
  }
  private static let numbers = [SIGINT, SIGTERM, SIGHUP]
  private static let depth = Lock(0)

  /// Runs `body`; a signal that comes meanwhile ends the process after it. Calls may be nested or come from
  /// several tasks at once: the end of the last one lets the signal through.
  package static func during<Result>(
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    Self.depth.withLock { depth in
      if depth == 0 { Self.begin() }
      depth += 1
    }
    defer {
      Self.depth.withLock { depth in
        depth -= 1
        if depth == 0 { Self.end() }
      }
    }
    return try await body()
  }

  private static func begin() {
    postponed.store(0, ordering: .sequentiallyConsistent)
    isPostponing.store(true, ordering: .sequentiallyConsistent)
    for number in Self.numbers {
      let previous = signal(number, Self.handler)
      if !Self.isSame(previous, SIG_DFL) { signal(number, previous) }
    }
  }

  private static func end() {
    isPostponing.store(false, ordering: .sequentiallyConsistent)
    for number in Self.numbers {
      let current = signal(number, SIG_DFL)
      // Somebody watches signals by now.
      if !Self.isSame(current, Self.handler) { signal(number, current) }
    }
    Self.takePending()
    let number = postponed.load(ordering: .sequentiallyConsistent)
    // To the process: this thread may block signals.
    if number != 0 { kill(getpid(), number) }
  }

  /// A signal may be pending for a thread that has not run since. This thread takes it now: otherwise, its
  /// work could be done, and the process could have ended in another way, before the signal arrives.
  private static func takePending() {
    var set = sigset_t()
    var previous = sigset_t()
    sigemptyset(&set)
    for number in Self.numbers { sigaddset(&set, number) }
    // A change of the mask makes the kernel look again for pending signals, and only a change does.
    pthread_sigmask(SIG_BLOCK, &set, &previous)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    pthread_sigmask(SIG_SETMASK, &previous, nil)
  }

  /// C's handlers are addresses, and 0 and 1 stand for the default and for nothing.
  private static func isSame(_ left: Handler?, _ right: Handler?) -> Bool {
    unsafeBitCast(left, to: Int.self) == unsafeBitCast(right, to: Int.self)
  }
}
