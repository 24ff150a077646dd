internal import CSystem
internal import Clocks
internal import EventLoop
internal import Glibc

/// Runs another program to its end and reads its standard output: no shell, nothing on its standard
/// input, limits of time and of bytes.
struct ChildProcess: Sendable {
  struct Result: Sendable {
    var output: [UInt8]
    /// The exit code, or nil when a signal ended it.
    var exitCode: Int32?
  }

  enum Failure: Error, Equatable {
    /// errno of the start.
    case notStarted(Int32)
    case tookTooLong
    case wroteTooMuch
    case noThread
  }

  /// A name to be looked up in `PATH`, or a path.
  var program: String
  var arguments: [String]
  var timeLimit = Duration.seconds(60)
  var byteLimit = 1 << 20
  var clock = ProcessClock()

  /// Runs it on a thread of its own, with this process's environment. What it writes to standard
  /// error is discarded. Its process group is killed when it exceeds a limit, and when this process ends.
  func run() async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      do throws(SystemCallError) {
        try Thread.detach(name: "login program") {
          continuation.resume(
            returning: Swift.Result { () throws(Failure) in try self.runHere() })
        }
      } catch {
        continuation.resume(returning: .failure(.noThread))
      }
    }
    return try result.get()
  }

  private func runHere() throws(Failure) -> Result {
    let group = try GroupGuard()
    var ends: [Int32] = [-1, -1]
    guard c_pipe2(&ends, O_CLOEXEC) == 0 else { throw .notStarted(errno) }
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    defer { close(ends[0]) }
    let process: pid_t
    do throws(Failure) {
      process = try Self.spawn(
        self.program, self.arguments, group: group.group, input: nil, output: ends[1])
    } catch {
      close(ends[1])
      throw error
    }
    close(ends[1])
    return try self.attend(process, of: group, output: ends[0])
  }

  /// Starts a program as from a shell, with signals that this process's threads do not take.
  ///
  /// - Parameters:
  ///   - group: the process group to join; 0 for a new one.
  ///   - input: nil for none.
  ///   - output: nil to discard it.
  static func spawn(
    _ program: String, _ arguments: [String], group: pid_t, input: Int32?, output: Int32?
  ) throws(Failure) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    if let output {
      posix_spawn_file_actions_adddup2(&actions, output, 1)
    } else {
      posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    }
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, group)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
    var words = ([program] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    words.append(nil)
    var process: pid_t = 0
    let code = posix_spawnp(&process, program, &actions, &attributes, words, environ)
    guard code == 0 else { throw .notStarted(code) }
    return process
  }

  /// Reads until the program has ended, or has to be ended.
  private func attend(
    _ process: pid_t, of group: borrowing GroupGuard, output: Int32
  ) throws(Failure) -> Result {
    let group = group.group > 0 ? group.group : process
    let deadline = self.clock.now + self.timeLimit
    var bytes: [UInt8] = []
    var failure: Failure?
    var status: Int32 = 0
    while true {
      // This comes before reading: an ended program has written everything.
      let hasEnded = waitpid(process, &status, WNOHANG) == process
      var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      if !hasEnded {
        _ = self.clock.waitingForOthers { poll(&watched, 1, 50) }
        // A program that has closed its output, and keeps running, would be asked again at once.
        if watched.revents & Int16(POLLIN) == 0, watched.revents & Int16(POLLHUP) != 0 {
          _ = poll(nil, 0, 50)
        }
      }
      if !self.drain(output, into: &bytes) { failure = .wroteTooMuch }
      if hasEnded { break }
      if failure == nil, self.clock.now >= deadline { failure = .tookTooLong }
      if failure != nil {
        kill(-group, SIGKILL)
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        break
      }
    }
    // Whatever it has left behind in its group.
    kill(-group, SIGKILL)
    if let failure { throw failure }
    let signal = status & 0x7f
    return Result(output: bytes, exitCode: signal == 0 ? (status >> 8) & 0xff : nil)
  }

  /// Takes what is there. Returns false when there is more than the limit.
  private func drain(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    while bytes.count <= self.byteLimit {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      // 0 at the end; an error when nothing is there yet.
      guard count > 0 else { return true }
      bytes += chunk[..<count]
    }
    return false
  }
}
