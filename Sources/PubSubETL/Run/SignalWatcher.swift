import EventLoop
import Glibc

/// The write end of the pipe that signal handlers write to.
// Guard: set once, before the handlers that read it are installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Turns the first SIGINT or SIGTERM into a clean stop; the second ends the process at once.
///
/// Handlers only write a byte to a pipe. A separate event loop reads it, so that the second signal
/// is seen whatever the rest of the program is waiting for.
final class SignalWatcher {
  private let loop: EventLoop

  /// - Parameter onFirst: called once, on the watcher's thread.
  init(onFirst: @escaping @Sendable () -> Void) async throws {
    self.loop = try EventLoop(name: "signals")
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
    for number in [SIGINT, SIGTERM] {
      signal(number) { number in
        var byte = UInt8(truncatingIfNeeded: number)
        let saved = errno
        _ = write(signalPipe, &byte, 1)
        errno = saved
      }
    }
  }

  private static func watch(
    _ read: Int32, on loop: EventLoop, _ onFirst: @escaping @Sendable () -> Void
  ) async throws {
    try await withCheckedThrowingContinuation { continuation in
      loop.execute { [unowned loop] in
        var hasStopped = false
        continuation.resume(
          with: Result {
            try loop.register(read, interest: .readable) { _ in
              var number: UInt8 = 0
              while Glibc.read(read, &number, 1) == 1 {
                if hasStopped { _exit(128 + Int32(number)) }
                hasStopped = true
                onFirst()
              }
            }
          })
      }
    }
  }
}
