import CSystem
import Glibc
import TestSupport

/// The most memory this process held at once.
enum PeakMemory {
  /// Bytes by which the resident memory grew at most while `body` ran. Other tests that run
  /// meanwhile count too.
  static func growth(during body: () async throws -> Void) async throws -> Int {
    malloc_trim(0)
    // Sets the peak to what is resident now (proc(5), clear_refs).
    let file = open("/proc/self/clear_refs", O_WRONLY)
    defer { close(file) }
    guard write(file, "5", 1) == 1 else { throw ProgramFailure(message: "clear_refs: \(errno)") }
    let before = try self.status("VmHWM:")
    try await body()
    return try self.status("VmHWM:") - before
  }

  /// Resident now.
  static func resident() throws -> Int {
    malloc_trim(0)
    return try self.status("VmRSS:")
  }

  /// Threads of this process.
  static func threads() throws -> Int { try self.entries("/proc/self/task") }

  /// Open descriptors of this process.
  static func descriptors() throws -> Int { try self.entries("/proc/self/fd") }

  private static func status(_ name: String) throws -> Int {
    guard let file = fopen("/proc/self/status", "r") else {
      throw ProgramFailure(message: "/proc/self/status: \(errno)")
    }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(
        decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      guard text.hasPrefix(name) else { continue }
      let digits = text.drop { !$0.isNumber }.prefix { $0.isNumber }
      return (Int(digits) ?? 0) * 1024
    }
    throw ProgramFailure(message: "no \(name) in /proc/self/status")
  }

  private static func entries(_ path: String) throws -> Int {
    guard let directory = opendir(path) else {
      throw ProgramFailure(message: "\(path): \(errno)")
    }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
      if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    return count
  }
}
