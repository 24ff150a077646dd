internal import Glibc

/// A call of the operating system that failed.
package struct SystemCallError: Error, Sendable, CustomStringConvertible {
  /// The name of the function, as in its manual page.
  package var call: String
  /// Its `errno`.
  package var number: Int32
  package var fileID: String, line: Int

  package init(
    _ call: String, _ number: Int32 = errno, fileID: String = #fileID, line: Int = #line
  ) {
    (self.call, self.number, self.fileID, self.line) = (call, number, fileID, line)
  }

  /// Whether the process or the system has run out of something that may be free again later:
  /// descriptors, threads, memory.
  package var isExhaustion: Bool {
    [EMFILE, ENFILE, EAGAIN, ENOMEM, ENOSPC].contains(self.number)
  }

  /// The transient error of opening a file, for libraries that could not read it and do not report
  /// the cause.
  package static func exhaustion(opening path: String) -> SystemCallError? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file < 0 else {
      close(file)
      return nil
    }
    let error = SystemCallError("open")
    return error.isExhaustion ? error : nil
  }

  package var description: String {
    let remedy =
      switch (self.call, self.number) {
      case (_, EMFILE): "; raise this user's limit of open files (ulimit -n) to at least 256"
      case (_, ENFILE): "; raise the system's limit of open files (sysctl fs.file-max)"
      case ("pthread_create", EAGAIN):
        "; raise the limit of processes and threads (ulimit -u), or that of the service or container "
          + "(TasksMax, --pids-limit)"
      default: ""
      }
    return "\(self.call): \(Self.text(of: self.number)) (errno \(self.number))\(remedy)"
  }

  /// The system's sentence for an error number.
  package static func text(of number: Int32) -> String {
    var text = [CChar](repeating: 0, count: 256)
    // Glibc fills the buffer for every number, known or not (XSI strerror_r).
    guard strerror_r(number, &text, text.count) == 0 else { return "error \(number)" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
