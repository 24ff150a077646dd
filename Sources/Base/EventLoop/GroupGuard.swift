internal import CSystem
internal import Glibc

/// A process group that ends with this process, however this process ends, SIGKILL included.
///
/// The group's leader is a shell that reads from a pipe of which this process alone holds the other end. The kernel
/// closes that end with the process; the shell then kills its group. (A signal on the death of the parent,
/// PR_SET_PDEATHSIG, would reach the program alone and not what it has started.)
struct GroupGuard: ~Copyable {
  private static let shell = "/bin/sh"
  private static let script = "trap '' HUP INT TERM; read -r line; kill -KILL 0"

  /// The group for programs to join; 0 without a shell, for a group of their own.
  let group: pid_t
  private let life: Int32

  init() throws(ChildProcess.Failure) {
    var ends: [Int32] = [-1, -1]
    guard c_pipe2(&ends, O_CLOEXEC) == 0 else { throw .notStarted(errno) }
    defer { close(ends[0]) }
    do throws(ChildProcess.Failure) {
      self.group = try ChildProcess(program: Self.shell, arguments: ["-c", Self.script]).spawn(
        group: 0, input: ends[0], output: nil)
      self.life = ends[1]
    } catch {
      switch error {
      case .notStarted(ENOENT), .notStarted(EACCES):
        // An image without a shell.
        self.group = 0
        self.life = ends[1]
      default:
        close(ends[1])
        throw error
      }
    }
  }

  deinit {
    close(self.life)
    guard self.group > 0 else { return }
    kill(-self.group, SIGKILL)
    var status: Int32 = 0
    while waitpid(self.group, &status, 0) == -1, errno == EINTR {}
  }
}
