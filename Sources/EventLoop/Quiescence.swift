internal import CSystem
internal import Clocks
internal import Glibc

/// Tells whether every thread of this process sleeps, and whether it has slept since an earlier look.
///
/// A look (`sample`) reads state and counts of context switches of all threads but the caller's from
/// `/proc/self/task`, and asks each TCP socket whether bytes wait in it. Equal marks of two looks prove that no
/// thread ran in between: a thread that runs has to be switched in. What was true of the process at any instant
/// between the two looks was therefore true at all of them.
package enum Quiescence {
  /// A mark of all threads; nil when one of them runs or waits for a disk, when bytes are on their way, or
  /// while something outside the served time is waited for.
  package static func sample() -> [UInt64]? {
    guard !ProcessClock.waitsForOthers else { return nil }
    let own = UInt64(c_gettid())
    guard var threads = Self.names(in: "/proc/self/task") else { return nil }
    threads.sort()
    var mark: [UInt64] = []
    var text = [UInt8](repeating: 0, count: 4096)
    for thread in threads where thread != own {
      let count = Self.read("/proc/self/task/\(thread)/status", into: &text)
      guard count > 0, let switches = Self.switches(text[..<count]) else { return nil }
      mark += [thread, switches.voluntary, switches.involuntary]
    }
    guard !Self.hasBytesInSockets(), !ProcessClock.waitsForOthers else { return nil }
    return mark
  }

  /// The counts of a thread that sleeps; nil for any other.
  static func switches(_ status: ArraySlice<UInt8>) -> (voluntary: UInt64, involuntary: UInt64)? {
    var isAsleep = false
    var counts: [UInt64] = []
    for line in status.split(separator: UInt8(ascii: "\n")) {
      if line.starts(with: "State:\tS".utf8) { isAsleep = true }
      guard line.starts(with: "voluntary_ctxt".utf8) || line.starts(with: "nonvoluntary".utf8),
        let tab = line.firstIndex(of: UInt8(ascii: "\t"))
      else { continue }
      guard let count = UInt64(String(decoding: line[(tab + 1)...], as: UTF8.self)) else {
        return nil
      }
      counts.append(count)
    }
    return isAsleep && counts.count == 2 ? (counts[0], counts[1]) : nil
  }

  /// Bytes that have arrived and are not read, or were sent and have not arrived.
  private static func hasBytesInSockets() -> Bool {
    guard let descriptors = Self.names(in: "/proc/self/fd") else { return true }
    for descriptor in descriptors {
      var status = stat()
      guard fstat(Int32(descriptor), &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
        continue
      }
      var count: Int32 = 0
      // Fails for sockets that listen, which hold no bytes.
      if ioctl(Int32(descriptor), UInt(FIONREAD), &count) == 0, count > 0 { return true }
      if ioctl(Int32(descriptor), UInt(TIOCOUTQ), &count) == 0, count > 0 { return true }
    }
    return false
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

  private static func read(_ path: String, into bytes: inout [UInt8]) -> Int {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return -1 }
    defer { close(descriptor) }
    return Glibc.read(descriptor, &bytes, bytes.count)
  }
}
