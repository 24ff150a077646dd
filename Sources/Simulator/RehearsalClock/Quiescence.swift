internal import CSystem
internal import Glibc

/// Tells whether every thread of this process sleeps, and whether it has slept since an earlier look.
///
/// A look (`sample`) reads state and counts of context switches of all threads but the caller's from
/// `/proc/self/task`, and asks each socket of an event loop whether bytes wait in it. Equal marks of two looks prove that no
/// thread ran in between: a thread that runs has to be switched in. What was true of the process at any instant
/// between the two looks was therefore true at all of them.
enum Quiescence {
  /// A mark of all threads; nil when one of them runs or waits for a disk, or when bytes are on their way.
  ///
  /// - Parameter sockets: of event loops; asked for after the threads.
  static func sample(sockets: () -> Set<Int32>) -> [UInt64]? {
    let own = UInt64(c_gettid())
    guard var threads = Self.names(in: "/proc/self/task") else { return nil }
    threads.sort()
    var mark: [UInt64] = []
    for thread in threads where thread != own {
      var (voluntary, involuntary) = (UInt64(0), UInt64(0))
      guard
        c_sleeping_thread("/proc/self/task/\(thread)/status", &voluntary, &involuntary) == 1
      else { return nil }
      mark += [thread, voluntary, involuntary]
    }
    return Self.holdBytes(sockets()) ? nil : mark
  }

  /// Bytes that have arrived and are not read, or were sent and have not arrived. Only in sockets of event
  /// loops: whoever blocks in another waits for others.
  private static func holdBytes(_ sockets: Set<Int32>) -> Bool {
    sockets.contains { descriptor in
      var count: Int32 = 0
      // Fails for sockets that listen and for signals, which hold no bytes.
      if ioctl(descriptor, UInt(FIONREAD), &count) == 0, count > 0 { return true }
      return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 && count > 0
    }
  }

  private static func names(in directory: String) -> [UInt64]? {
    guard let stream = opendir(directory) else { return nil }
    defer { closedir(stream) }
    var names: [UInt64] = []
    while let entry = readdir(stream) {
      let number = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { UInt64(String(cString: $0)) }
      }
      if let number { names.append(number) }
    }
    return names
  }
}
