import Glibc

/// Where a report goes: standard output, a descriptor, a special file, or a file that is replaced.
enum ReportDestination: Equatable {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// How long a reader of a pipe, FIFO or terminal may read nothing of a report.
  private static let patience = Duration.seconds(30)

  /// `-`.
  case standardOutput
  /// `/dev/stdout`, `/dev/fd/3`: already open, whatever it leads to.
  case descriptor(Int32)
  /// A FIFO or device, which is written in place.
  case special(String)
  /// A file that is replaced as a whole, or made.
  case file(String)

  /// Looks at what has that name; to be asked before a run, so that nothing is exported first.
  ///
  /// - Parameter path: relative to the working directory.
  init(_ path: String) throws(Failure) {
    guard path != "-" else {
      self = .standardOutput
      return
    }
    let file = FilePath.resolve(path, base: FilePath.workingDirectory)
    if let number = FilePath.descriptor(file) {
      guard fcntl(number, F_GETFD) >= 0 else { throw Self.failure(file, code: errno) }
      self = .descriptor(number)
      return
    }
    var status = stat()
    guard lstat(file, &status) == 0 else {
      let code = errno
      guard code == ENOENT else { throw Self.failure(file, code: code) }
      let directory = FilePath.directory(of: file)
      guard access(directory, W_OK | X_OK) == 0 else { throw Self.failure(file, code: errno) }
      self = .file(file)
      return
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: self = .file(file)
    case S_IFIFO, S_IFCHR: self = .special(file)
    case S_IFLNK:
      throw Failure(
        description:
          "the report cannot be written to \(file): it is a symbolic link; name the file itself")
    case S_IFDIR: throw Self.failure(file, code: EISDIR)
    default:
      throw Failure(
        description: "the report cannot be written to \(file): it is not a file, FIFO or terminal")
    }
  }

  /// True for `-` and for every path that leads to the same descriptor.
  var isStandardOutput: Bool {
    self == .standardOutput || self == .descriptor(StandardStream.output.rawValue)
  }

  private static func failure(_ file: String, code: Int32) -> Failure {
    let cause =
      code == ETIMEDOUT
      ? "no program has read it for \(Phrase.duration(Self.patience))"
      : String(cString: strerror(code))
    return Failure(description: "the report cannot be written to \(file): \(cause)")
  }

  // MARK: Writing

  /// A reader of a file sees what was there before or the new text, never half of one.
  func write(_ text: PrintableText) throws(Failure) {
    switch self {
    case .standardOutput:
      MessageWriter.standardError.letGoFirst()
      if let code = text.write(to: StandardStream.output.rawValue, patience: Self.patience) {
        throw Self.failure("standard output", code: code)
      }
    case .descriptor(let number):
      if let code = text.write(to: number, patience: Self.patience) {
        throw Self.failure("/dev/fd/\(number)", code: code)
      }
    case .special(let file):
      // Not blocking: a FIFO that nobody reads would keep the run from ending.
      let descriptor = open(file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
      guard descriptor >= 0 else {
        let code = errno
        if code == ENXIO {
          throw Failure(
            description: "the report cannot be written to \(file): no program is reading from it")
        }
        throw Self.failure(file, code: code)
      }
      defer { close(descriptor) }
      _ = fcntl(descriptor, F_SETFL, 0)
      if let code = text.write(to: descriptor, patience: Self.patience) {
        throw Self.failure(file, code: code)
      }
    case .file(let file): try Self.replace(file, with: text)
    }
  }

  /// The new file gets a name that nobody can have taken before, in the same directory.
  static func replace(_ file: String, with text: PrintableText) throws(Failure) {
    let name = String(UInt64.random(in: .min ... .max), radix: 16)
    let temporary = "\(FilePath.directory(of: file))/.pubsub-etl.\(name).tmp"
    let descriptor = open(
      temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw Self.failure(file, code: errno) }
    var failed = text.write(to: descriptor, patience: nil)
    close(descriptor)
    if failed == nil, rename(temporary, file) != 0 { failed = errno }
    guard let failed else { return }
    unlink(temporary)
    throw Self.failure(file, code: failed)
  }
}
