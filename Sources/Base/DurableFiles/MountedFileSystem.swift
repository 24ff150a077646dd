internal import Glibc

/// The file systems of this machine, as proc_pid_mountinfo(5) lists them.
package enum MountedFileSystem {
  /// The type of the file system that a path is on, and where it is mounted: `nfs4 at /mnt/out`.
  ///
  /// - Parameter path: absolute; what does not exist yet is on the file system of its directory.
  package static func name(of path: String) -> String {
    var place = path
    while true {
      if let real = realpath(place, nil) {
        defer { free(real) }
        place = String(cString: real)
        break
      }
      guard place != "/", place.contains("/") else { return "of unknown type" }
      place = SystemFileSystem.parent(of: place)
    }
    return Self.name(of: place, in: Self.mounts()) ?? "of unknown type"
  }

  /// - Parameters:
  ///   - place: a path without links.
  ///   - mounts: the content of `/proc/self/mountinfo`.
  static func name(of place: String, in mounts: String) -> String? {
    var found: (point: String, type: String)?
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ", omittingEmptySubsequences: false)
      // The optional fields end with a hyphen, and the type follows it.
      guard fields.count > 6, let hyphen = fields[6...].firstIndex(of: "-"),
        hyphen + 1 < fields.count
      else { continue }
      let point = Self.unescaped(fields[4])
      guard point == "/" || place == point || place.hasPrefix(point + "/") else { continue }
      // A later line of the same length is mounted over the earlier one.
      if point.utf8.count >= found?.point.utf8.count ?? 0 {
        found = (point, String(fields[hyphen + 1]))
      }
    }
    return found.map { "\($0.type) at \($0.point)" }
  }

  /// Blanks, tabs, line ends and backslashes are written as three octal digits.
  private static func unescaped(_ field: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(field.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"),
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func mounts() -> String {
    let file = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    // A machine with thousands of containers has a few megabytes.
    while bytes.count < 16 << 20 {
      let count = read(file, &chunk, chunk.count)
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
