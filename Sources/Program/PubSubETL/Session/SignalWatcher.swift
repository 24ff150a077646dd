import Clocks
import EventLoop
import Glibc
internal import Synchronization

/// The write end of the pipe that signal handlers write to.
// Guard: set once, before the handlers that read it are installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1
/// Whether a signal has come.
private let hasSignal = Atomic<Bool>(false)

/// Turns the first SIGINT, SIGTERM or SIGHUP into a clean stop; the second ends the process at once.
///
/// The handler of the first writes a byte to a pipe, which a separate event loop reads. That of the
/// second ends the process itself, whatever the rest of the program is waiting for, also after the work.
final class SignalWatcher {
  private let loop: EventLoop

  /// - Parameters:
  ///   - clock: of the run that it may stop.
  ///   - onFirst: called once, on the watcher's thread.
  init(clock: ProcessClock, onFirst: @escaping @Sendable () -> Void) async throws {
    self.loop = try EventLoop(name: "signals", clock: clock)
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemCallError("pipe") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    do {
      try await Self.watch(ends[0], on: self.loop, onFirst)
    } catch {
      for end in ends { close(end) }
      throw error
    }
    signalPipe = ends[1]
    for number in [SIGINT, SIGTERM, SIGHUP] {
      // `nohup` makes a program ignore the end of its terminal.
      if number == SIGHUP, Self.isIgnored(number) { continue }
      signal(number) { number in
        if hasSignal.exchange(true, ordering: .sequentiallyConsistent) { _exit(128 + number) }
        var byte = UInt8(truncatingIfNeeded: number)
        let saved = errno
        _ = write(signalPipe, &byte, 1)
        errno = saved
      }
    }
  }

  /// Lets SIGINT and SIGTERM end the process at once, which needs handlers if it is the first process
  /// of a container. For commands that leave nothing behind; a watcher that follows replaces this.
  static func endAtOnce() {
    for number in [SIGINT, SIGTERM] {
      signal(number) { number in _exit(128 + number) }
    }
  }

  private static func watch(
    _ read: Int32, on loop: EventLoop, _ onFirst: @escaping @Sendable () -> Void
  ) async throws {
    try await withCheckedThrowingContinuation { continuation in
      loop.execute { [unowned loop] in
        continuation.resume(
          with: Result {
            try loop.register(read, interest: .readable) { _ in
              var number: UInt8 = 0
              while Glibc.read(read, &number, 1) == 1 { onFirst() }
            }
          })
      }
    }
  }
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    // C's handlers are addresses, and 1 stands for nothing.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }
}
