import FoundationEssentials
import Glibc

package struct ProgramFailure: Error {
  package var message: String
  package init(message: String) { self.message = message }
}

/// Runs a program found in `PATH` to its end.
package func runProgram(_ arguments: String...) throws { try runProgram(arguments) }

/// Runs a program found in `PATH` to its end.
///
/// - Throws: `ProgramFailure` with the end of what it wrote to standard output and standard error.
package func runProgram(_ arguments: [String]) throws {
  let directory = try TemporaryDirectory()
  let output = "\(directory.path)/output"
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
  posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
  posix_spawn_file_actions_adddup2(&actions, 1, 2)
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
    let text = (try? Data(contentsOf: URL(filePath: output))) ?? Data()
    throw ProgramFailure(
      message: "\(arguments.joined(separator: " ")): wait status \(status)\n"
        + String(decoding: text.suffix(8000), as: UTF8.self))
  }
}
