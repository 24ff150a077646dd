import FoundationEssentials
import Glibc

public struct ProgramFailure: Error {
  public var message: String
  public init(message: String) { self.message = message }
}

/// Runs a program found in `PATH` to its end.
public func runProgram(_ arguments: String...) throws { try runProgram(arguments) }

/// Runs a program found in `PATH` to its end. Its standard output is thrown away.
///
/// - Throws: `ProgramFailure` with the end of what it wrote to standard error.
public func runProgram(_ arguments: [String]) throws {
  let directory = try TemporaryDirectory()
  let errors = "\(directory.path)/stderr"
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  for descriptor: Int32 in 0...1 {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
  }
  posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
  var pointers = arguments.map { strdup($0) }
  defer { for pointer in pointers { free(pointer) } }
  pointers.append(nil)
  var pid: pid_t = 0
  let code = posix_spawnp(&pid, arguments[0], &actions, nil, pointers, environ)
  guard code == 0 else {
    throw ProgramFailure(message: "\(arguments[0]): posix_spawn failed with \(code)")
  }
  var status: Int32 = 0
  while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
  guard status == 0 else {
    let text = (try? Data(contentsOf: URL(filePath: errors))) ?? Data()
    throw ProgramFailure(
      message: "\(arguments.joined(separator: " ")): wait status \(status)\n"
        + String(decoding: text.suffix(8000), as: UTF8.self))
  }
}
