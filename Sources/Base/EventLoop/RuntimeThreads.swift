import Glibc

/// The threads that this process may still start.
///
/// When the system refuses a thread to the pool behind the concurrency runtime, the pool tries again for
/// ever: nothing runs, not even what would obey a signal or a time limit.
package enum RuntimeThreads {
  /// A small pipeline has 12 at once on two processors; the pool may have one more for each other
  /// processor.
  private static var count: Int {
    min(14 + max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), 64)
  }

  /// Whether the pool can look after its threads: it ends the process by a trap, after a moment, when
  /// it cannot read their state in `/proc`.
  package static var canBeWatched: Bool { access("/proc/thread-self/stat", R_OK) == 0 }

  /// The message for a system where the threads cannot be watched.
  package static let unwatched =
    "/proc is not mounted, and the Swift runtime needs it; mount it (mount -t proc proc /proc)"

  /// Starts and ends as many threads as a small run needs. To be called before anything asynchronous has
  /// begun.
  ///
  /// - Throws: `SystemCallError` when the limit of the user or of the control group is too low.
  package static func require() throws(SystemCallError) {
    let gate = Lock(())
    let argument = Unmanaged.passUnretained(gate).toOpaque()
    var threads: [pthread_t] = []
    // All of them wait at the gate until the last one has been started.
    let code = gate.withLock { _ in
      for _ in 0..<Self.count {
        var thread = pthread_t()
        let code = pthread_create(
          &thread, nil,
          { argument in
            guard let argument else { return nil }
            Unmanaged<Lock<Void>>.fromOpaque(argument).takeUnretainedValue().withLock { _ in }
            return nil
          }, argument)
        if code != 0 { return code }
        threads.append(thread)
      }
      return 0
    }
    withExtendedLifetime(gate) { for thread in threads { pthread_join(thread, nil) } }
    if code != 0 { throw SystemCallError("pthread_create", code) }
  }
}
