import Glibc

/// The file descriptors of the timers with which the Swift runtime wakes sleeping tasks.
///
/// The runtime opens them when a task first sleeps. When no descriptor is free at that time, it traps
/// or never wakes the task.
package enum RuntimeDescriptors {
  /// The runtime's are 4: an epoll instance, an eventfd and two timerfd. With the others a small pipeline
  /// runs to its end, so that no limit is found too low only after a login.
  private static let count = 32
  /// Common as the default, and safe for programs that inherit the limit and call `select`.
  private static let usualLimit: rlim_t = 1024

  /// Raises a low soft limit of open files to 1,024 if the hard limit permits it. To be called before
  /// anything asynchronous has begun.
  ///
  /// - Throws: `SystemCallError` when fewer than 32 descriptors are free.
  package static func require() throws(SystemCallError) {
    Self.raiseLimit()
    try Self.requireFree()
  }

  /// Descriptors that a run needs in addition to its output: connections, the state directory, this
  /// enumeration's.
  private static let reserve = 48

  /// Makes room for open files of output: raises the soft limit beyond 1,024 if they need it.
  ///
  /// - Returns: the number of files that can be open, at least 1 and at most `count`.
  package static func makeRoom(forFiles count: Int) -> Int {
    guard var limit = Self.limit else { return count }
    let wanted = rlim_t(count + Self.reserve)
    if limit.rlim_cur < wanted {
      limit.rlim_cur = min(limit.rlim_max, wanted)
      // If it fails, the limit stays as it is.
      setrlimit(Self.resource, &limit)
    }
    let granted = Int(clamping: Self.limit?.rlim_cur ?? Self.usualLimit)
    return min(count, max(granted - Self.reserve, 1))
  }

  /// Opens the descriptors now, while there are some.
  package static func open() async {
    // Long enough that the timer has not expired when the runtime sets it.
    try? await ContinuousClock().sleep(for: .milliseconds(5))
  }

  private static func requireFree() throws(SystemCallError) {
    let end = Int32(clamping: Self.limit?.rlim_cur ?? Self.usualLimit)
    var count = 0
    // Not opened to be counted: another thread may need one at this moment.
    for descriptor in 0..<end where fcntl(descriptor, F_GETFD) < 0 {
      count += 1
      if count == Self.count { return }
    }
    throw SystemCallError("open", EMFILE)
  }

  private static func raiseLimit() {
    guard var limit = Self.limit, limit.rlim_cur < Self.usualLimit else { return }
    limit.rlim_cur = min(limit.rlim_max, Self.usualLimit)
    setrlimit(Self.resource, &limit)
  }

  private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }

  private static var limit: rlimit? {
    var limit = rlimit()
    return getrlimit(Self.resource, &limit) == 0 ? limit : nil
  }
}
