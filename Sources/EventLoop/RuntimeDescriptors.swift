import Glibc

/// The file descriptors of the timers with which the Swift runtime wakes sleeping tasks.
///
/// The runtime opens them when a task first sleeps. When no descriptor is free at that time, it traps
/// or never wakes the task.
public enum RuntimeDescriptors {
  /// The runtime's are 4: an epoll instance, an eventfd and two timerfd. With the others a small pipeline
  /// runs to its end, so that no limit is found too low only after a login.
  private static let count = 32
  /// Common as the default, and safe for programs that inherit the limit and call `select`.
  private static let usualLimit: rlim_t = 1024

  /// Opens the descriptors now, while there are some. Raises a low soft limit of open files to 1,024
  /// if the hard limit permits it.
  ///
  /// - Throws: `SystemCallError` when fewer than 32 descriptors are free.
  public static func open() async throws(SystemCallError) {
    Self.raiseLimit()
    try Self.requireFree()
    // Long enough that the timer has not expired when the runtime sets it.
    try? await ContinuousClock().sleep(for: .milliseconds(5))
  }

  private static func requireFree() throws(SystemCallError) {
    var descriptors: [Int32] = []
    defer { for descriptor in descriptors { close(descriptor) } }
    while descriptors.count < Self.count {
      let descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
      guard descriptor >= 0 else { throw SystemCallError("fcntl") }
      descriptors.append(descriptor)
    }
  }

  private static func raiseLimit() {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < Self.usualLimit else { return }
    limit.rlim_cur = min(limit.rlim_max, Self.usualLimit)
    setrlimit(resource, &limit)
  }
}
