internal import Glibc

/// A value behind a pthread mutex. (`Synchronization.Mutex` gives the thread sanitizer false
/// alarms on Linux.)
package final class Lock<Value: Sendable>: @unchecked Sendable {
  // Guard: `mutex`, held whenever `value` is touched.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  package init(_ value: Value) {
    self.value = value
    self.mutex = .allocate(capacity: 1)
    let result = pthread_mutex_init(self.mutex, nil)
    precondition(result == 0, "pthread_mutex_init: \(result)")
  }

  deinit {
    pthread_mutex_destroy(self.mutex)
    self.mutex.deallocate()
  }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(self.mutex)
    defer { pthread_mutex_unlock(self.mutex) }
    return try body(&self.value)
  }
}
