import Glibc
import SimulatedOrg

/// A file that a program writes as a whole, where others may have put something in its place.
enum OutputFile {
  /// Replaces a file, so that a reader sees the old text or the new one; writes into FIFOs and
  /// devices. A symbolic link is refused, as it may lead anywhere, but for those of the system
  /// (`/dev/stdout`).
  ///
  /// - Parameter mode: the permissions of the file.
  static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws {
    var status = stat()
    if path.hasPrefix("/dev/") || path.hasPrefix("/proc/self/fd/") {
      return try Self.fill(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, text)
    }
    if lstat(path, &status) == 0 {
      switch status.st_mode & S_IFMT {
      case S_IFREG: break
      case S_IFIFO, S_IFCHR:
        return try Self.fill(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, text)
      case S_IFLNK:
        throw SimulatorError(
          .configuration,
          "\(path) is a symbolic link; name the file itself")
      default:
        throw SimulatorError(.configuration, "\(path) is not a file, FIFO or terminal")
      }
    }
    let temporary = "\(path).\(String(UInt64.random(in: .min ... .max), radix: 16)).tmp"
    do {
      try Self.fill(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, text, mode)
      guard rename(temporary, path) == 0 else { throw SimulatorError.system("rename(\"\(path)\")") }
    } catch {
      unlink(temporary)
      throw error
    }
  }

  private static func fill(
    _ path: String, _ flags: Int32, _ text: String, _ mode: mode_t = 0o644
  ) throws {
    let descriptor = open(path, flags, mode)
    guard descriptor >= 0 else { throw SimulatorError.system("open(\"\(path)\")") }
    defer { close(descriptor) }
    var text = text
    try text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
        if count < 0 {
          if errno == EINTR { continue }
          throw SimulatorError.system("write(\"\(path)\")")
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
    }
  }
}
