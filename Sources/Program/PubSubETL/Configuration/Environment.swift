import EventLoop
import Glibc

/// The surroundings of the process that configuration reads; replaced in tests.
struct Environment: Sendable {
  /// The value of an environment variable, nil when it is not set.
  var variable: @Sendable (String) -> String?
  /// Stands for variables that are needed and not set; nil where that is a mistake.
  var placeholder: String?

  static let process = Environment { name in
    getenv(name).map { String(cString: $0) }
  }

  init(variable: @escaping @Sendable (String) -> String?, placeholder: String? = nil) {
    self.variable = variable
    self.placeholder = placeholder
  }

  init(_ variables: [String: String]) { self.init { variables[$0] } }
}

/// Paths as configuration sees them: absolute, without `.` and `..`.
///
/// Bytes and not characters: a slash with a combining character behind it separates all the same.
enum FilePath {
  private static let slash = UInt8(ascii: "/")

  /// - Parameter base: an absolute path, taken for relative `path`s.
  static func resolve(_ path: String, base: String) -> String {
    Self.normalize(path.utf8.first == Self.slash ? path : "\(base)/\(path)")
  }

  /// Why a path is not meant as it is; nil if it may be. It would name a file or directory `~`.
  static func mistake(in path: String) -> String? {
    guard !path.utf8.contains(0) else { return "a path cannot contain U+0000" }
    let first = path.utf8.split(
      separator: Self.slash, maxSplits: 1, omittingEmptySubsequences: false)
    let isHome =
      path == "~" || first.count == 2 && first[0].first == UInt8(ascii: "~")
    guard !isHome, !path.contains("$HOME"), !path.contains("${HOME}") else {
      return "only a shell replaces '~' and '$HOME' in a path; write the absolute path"
    }
    return nil
  }

  /// A path as a word of a shell command, in double quotes if it needs any, because messages have
  /// commands in single quotes.
  static func shellWord(_ path: String) -> String {
    let plain = Set("/._-+=:,@%".utf8)
    let isPlain = path.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), 0x80...:
        true
      default: plain.contains(byte)
      }
    }
    guard !isPlain || path.isEmpty else { return path }
    var word = "\""
    for scalar in path.unicodeScalars {
      if "\"\\$`".unicodeScalars.contains(scalar) { word += "\\" }
      word.unicodeScalars.append(scalar)
    }
    return word + "\""
  }

  /// The working directory. One that was removed has no path of its own, and nothing can be made in it.
  static var workingDirectory: String {
    guard let path = getcwd(nil, 0) else { return "/proc/self/cwd" }
    defer { free(path) }
    return String(cString: path)
  }

  /// The directory a file is in.
  static func directory(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: Self.slash) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The path with symbolic links resolved; nil when it does not exist.
  static func real(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return String(cString: real)
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Whether libraries can read the file whenever they need it: a FIFO would keep them waiting.
  static func isReadable(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && access(path, R_OK) == 0
  }

  /// The number in `/dev/stdin`, `/dev/fd/3` and the like: something that is already open.
  static func descriptor(_ path: String) -> Int32? {
    switch path {
    case "/dev/stdin": return 0
    case "/dev/stdout": return 1
    case "/dev/stderr": return 2
    default:
      for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
        return Int32(path.dropFirst(directory.count))
      }
      return nil
    }
  }

  private static func normalize(_ path: String) -> String {
    var parts: [Substring.UTF8View] = []
    for part in path.utf8.split(separator: Self.slash) where !part.elementsEqual(".".utf8) {
      if part.elementsEqual("..".utf8) { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.map { String(Substring($0)) }.joined(separator: "/")
  }
}

/// A small file read as a whole.
enum TextFile {
  struct ReadError: Error, CustomStringConvertible {
    /// `cannot be read: No such file or directory`
    var description: String
    /// Whether it may be read later: descriptors have run out.
    var isTemporary = false
  }

  /// A FIFO is refused, which would keep the program waiting for a writer. A pipe that is already open
  /// (`/dev/stdin`, `/dev/fd/3`, which is what a shell makes of `<(command)`) has one.
  static func read(_ path: String, limit: Int = 4 << 20) throws(ReadError) -> [UInt8] {
    var file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard file >= 0 else { throw Self.error(errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Self.error(errno) }
    if status.st_mode & S_IFMT != S_IFREG {
      guard status.st_mode & S_IFMT != S_IFDIR else { throw Self.error(EISDIR) }
      guard let number = FilePath.descriptor(path) else {
        throw ReadError(description: "cannot be read: it is not a regular file")
      }
      // As it was opened: its reads wait.
      let open = fcntl(number, F_DUPFD_CLOEXEC, 0)
      guard open >= 0 else { throw Self.error(errno) }
      close(file)
      file = open
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(file, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count < 0 {
        let code = errno
        if code == EINTR { continue }
        throw Self.error(code)
      }
      bytes += chunk[..<count]
      guard bytes.count <= limit else {
        throw ReadError(description: "cannot be read: it has more than \(limit >> 20) MiB")
      }
    }
  }

  private static func error(_ code: Int32) -> ReadError {
    let error = SystemCallError("open", code)
    return error.isExhaustion
      ? ReadError(description: "cannot be read: \(error)", isTemporary: true)
      : ReadError(description: "cannot be read: \(SystemCallError.text(of: code))")
  }
}
