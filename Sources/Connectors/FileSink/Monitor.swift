internal import Glibc

/// A value guarded by a mutex, and a place to wait until another thread has changed it.
///
/// For two threads of which at most one waits at a time. Waiting blocks the thread, so it is not for
/// threads of the concurrency runtime.
final class Monitor<State>: @unchecked Sendable {
  // Guard: `state` is touched only between lock and unlock of `mutex`, or in `deinit`.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let changed: UnsafeMutablePointer<pthread_cond_t>
  private var state: State

  init(_ state: State) {
    self.state = state
    self.mutex = .allocate(capacity: 1)
    self.mutex.initialize(to: pthread_mutex_t())
    self.changed = .allocate(capacity: 1)
    self.changed.initialize(to: pthread_cond_t())
    let code = pthread_mutex_init(self.mutex, nil) | pthread_cond_init(self.changed, nil)
    precondition(code == 0, "pthread_mutex_init, pthread_cond_init: \(code)")
  }

  deinit {
    pthread_cond_destroy(self.changed)
    pthread_mutex_destroy(self.mutex)
    self.changed.deinitialize(count: 1)
    self.changed.deallocate()
    self.mutex.deinitialize(count: 1)
    self.mutex.deallocate()
  }

  /// Runs `body` while no other thread is inside. Not recursive.
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    return body(&self.state)
  }

  /// Waits until `body` returns a result. It is called at once and after each `wake`.
  func wait<Result>(for body: (inout State) -> Result?) -> Result {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    while true {
      if let result = body(&self.state) { return result }
      pthread_cond_wait(self.changed, self.mutex)
    }
  }

  /// Wakes the thread that waits, if there is one.
  func wake() { pthread_cond_signal(self.changed) }
}
