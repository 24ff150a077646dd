internal import EventLoop
import Glibc

/// Files that a command makes and that must not be there before.
struct NewFiles {
  struct File {
    /// Absolute.
    var path: String
    var text: String
    var mode: mode_t
  }

  /// Makes all files, or none.
  ///
  /// - Throws: `RunFailure` if a file is there already, also as a symbolic link, or cannot be written.
  static func make(_ files: [File]) throws(RunFailure) {
    var made: [String] = []
    do throws(RunFailure) {
      for file in files {
        let descriptor = open(
          file.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file.mode)
        guard descriptor >= 0 else {
          throw errno == EEXIST
            ? RunFailure(
              .fileExists, "\(file.path) is there already and was not changed; choose another name")
            : Self.failure(file)
        }
        defer { close(descriptor) }
        made.append(file.path)
        try Self.fill(descriptor, file)
      }
    } catch {
      for path in made { unlink(path) }
      throw error
    }
  }

  private static func fill(_ descriptor: Int32, _ file: File) throws(RunFailure) {
    var rest = Array(file.text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw Self.failure(file)
      }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw Self.failure(file) }
  }

  private static func failure(_ file: File) -> RunFailure {
    RunFailure(.output, "\(file.path) cannot be written: \(SystemCallError.text(of: errno))")
  }
}
