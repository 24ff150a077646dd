import CSystem
import Glibc

/// Starting POSIX threads: for blocking calls and for loops that must not occupy a thread of the
/// concurrency runtime.
package enum Thread {
  private final class Entry: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Runs `body` on a new detached thread that takes no signals: those belong to the program's
  /// own handling.
  /// - Parameter name: shown by debuggers, 15 bytes of it.
  /// - Throws: when the system has no thread left; `body` does not run then.
  package static func detach(
    name: String, _ body: @escaping @Sendable () -> Void
  ) throws(SystemCallError) {
    let entry = Unmanaged.passRetained(Entry(name: name, body: body))
    var all = sigset_t()
    var previous = sigset_t()
    sigfillset(&all)
    // The new thread inherits the mask, so that no signal arrives between its start and a call.
    pthread_sigmask(SIG_SETMASK, &all, &previous)
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let entry = Unmanaged<Entry>.fromOpaque(argument).takeRetainedValue()
        c_set_thread_name(entry.name)
        entry.body()
        return nil
      }, entry.toOpaque())
    pthread_sigmask(SIG_SETMASK, &previous, nil)
    guard code == 0 else {
      entry.release()
      throw SystemCallError("pthread_create", code)
    }
    pthread_detach(thread)
  }
}
