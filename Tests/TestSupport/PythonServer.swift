import EventLoop
import FoundationEssentials
import Glibc

/// A Python script of `Tests/Fixtures` that serves on a loopback port, which it prints as its first
/// line. It ends when the object goes, or with the test process, by the end of its input.
package final class PythonServer: Sendable {
  package let port: UInt16
  private let process: pid_t
  private let input: Int32
  private let isKilled = Lock(false)

  package init(_ script: String, _ arguments: [String] = []) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures")
    let (input, output) = (try Self.pipe(), try Self.pipe())
    defer {
      close(input.read)
      close(output.read)
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input.read, 0)
    posix_spawn_file_actions_adddup2(&actions, output.write, 1)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var words = (["python3", folder.appending(path: script).path] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    words.append(nil)
    var process: pid_t = 0
    let code = posix_spawnp(&process, "python3", &actions, nil, words, environ)
    close(output.write)
    guard code == 0 else {
      close(input.write)
      throw ProgramFailure(message: "python3 did not start: \(code)")
    }
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(output.read, &byte, 1) == 1, byte != 10 { line.append(byte) }
    self.process = process
    self.input = input.write
    self.port = UInt16(String(decoding: line, as: UTF8.self)) ?? 0
    guard self.port != 0 else { throw ProgramFailure(message: "\(script) printed no port") }
  }

  deinit {
    close(self.input)
    self.kill()
  }

  /// Sends one line of command.
  package func tell(_ line: String) throws {
    let line = Array("\(line)\n".utf8)
    guard write(self.input, line, line.count) == line.count else {
      throw ProgramFailure(message: "the server does not listen")
    }
  }

  /// Ends the process at once, without any farewell. Once only: the number may be given to another
  /// process afterwards.
  package func kill() {
    let wasKilled = self.isKilled.withLock { isKilled in
      defer { isKilled = true }
      return isKilled
    }
    guard !wasKilled else { return }
    Glibc.kill(self.process, SIGKILL)
    var status: Int32 = 0
    while waitpid(self.process, &status, 0) == -1, errno == EINTR {}
  }

  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { throw ProgramFailure(message: "pipe: \(errno)") }
    // Another server that starts meanwhile may hold them too, but a server is killed, not waited
    // for.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }
}
