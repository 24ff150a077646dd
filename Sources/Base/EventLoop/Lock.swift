public import Glibc

/// A value guarded by a mutex, for short critical sections that never suspend.
///
/// Built on `pthread_mutex_t`: the mutex of the Synchronization module is invisible to the thread
/// sanitizer on Linux and makes it report races that do not exist.
@usableFromInline package final class Lock<State>: @unchecked Sendable {
  // Guard: `state` is touched only between lock and unlock of `mutex`, or in `deinit`.
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline var state: State

  @inlinable
  package init(_ state: State) {
    self.state = state
    self.mutex = .allocate(capacity: 1)
    self.mutex.initialize(to: pthread_mutex_t())
    let code = pthread_mutex_init(self.mutex, nil)
    precondition(code == 0, "pthread_mutex_init: \(code)")
  }

  deinit {
    pthread_mutex_destroy(self.mutex)
    self.mutex.deinitialize(count: 1)
    self.mutex.deallocate()
  }

  /// Runs `body` while no other thread is inside. Not recursive: calling it again from `body`
  /// deadlocks. Side effects such as resuming a continuation belong after it.
  @inlinable
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    return try body(&self.state)
  }
}
