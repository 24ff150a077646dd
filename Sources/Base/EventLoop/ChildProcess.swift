internal import CSystem
package import Clocks
internal import Glibc

/// Runs another program to its end: no shell, limits of time and of bytes.
package struct ChildProcess: Sendable {
  package struct Result: Sendable {
    package var output: [UInt8]
    /// The exit code, or nil when a signal ended it.
    package var exitCode: Int32?
  }

  package enum Failure: Error, Equatable {
    /// errno of the start.
    case notStarted(Int32)
    case tookTooLong
    case wroteTooMuch
    case noThread
  }

  /// A name to be looked up in `PATH`, or a path.
  package var program: String
  package var arguments: [String]
  /// What the program finds on its standard input.
  package var input: [UInt8] = []
  /// `NAME=value`; nil for the environment of this process.
  package var environment: [String]?
  package var timeLimit = Duration.seconds(60)
  /// The most that the program may write to standard output; nil to discard what it writes.
  package var byteLimit: Int? = 1 << 20
  package var clock = ProcessClock()

  package init(program: String, arguments: [String]) {
    (self.program, self.arguments) = (program, arguments)
  }

  /// Runs it on a thread of its own. What it writes to standard error is discarded. Its process group is
  /// killed when it ends, when it exceeds a limit, and when this process ends. A program that leaves its group
  /// is killed alone; one that this process may not kill is left running.
  package func run() async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      do throws(SystemCallError) {
        try Thread.detach(name: "other program") {
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
    // The program may end before it has read its input.
    EventLoop.ignoreBrokenPipes()
    let group = try GroupGuard()
    let output = try Pipe(blockingEnd: 1)
    let input = try self.input.isEmpty ? nil : Pipe(blockingEnd: 0)
    let process = try self.spawn(
      group: group.group, input: input?.ends[0],
      output: self.byteLimit == nil ? nil : output.ends[1])
    output.close(1)
    input?.close(0)
    return try self.attend(process, of: group, input: input, output: output)
  }

  /// Starts a program as from a shell, with signals that this process's threads do not take.
  ///
  /// - Parameters:
  ///   - group: the process group to join; 0 for a new one.
  ///   - input: nil for none.
  ///   - output: nil to discard it.
  func spawn(group: pid_t, input: Int32?, output: Int32?) throws(Failure) -> pid_t {
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
    var words = ([self.program] + self.arguments).map { strdup($0) }
    var variables = (self.environment ?? []).map { strdup($0) }
    defer { for text in words + variables { free(text) } }
    words.append(nil)
    variables.append(nil)
    var process: pid_t = 0
    let code =
      self.environment == nil
      ? posix_spawnp(&process, self.program, &actions, &attributes, words, environ)
      : posix_spawnp(&process, self.program, &actions, &attributes, words, variables)
    guard code == 0 else { throw .notStarted(code) }
    return process
  }

  /// Writes and reads until the program has ended, or has to be ended.
  private func attend(
    _ process: pid_t, of group: borrowing GroupGuard, input: Pipe?, output: Pipe
  ) throws(Failure) -> Result {
    let group = group.group > 0 ? group.group : process
    let deadline = self.clock.now + self.timeLimit
    var rest = self.input[...]
    var bytes: [UInt8] = []
    var failure: Failure?
    var status: Int32 = 0
    while true {
      if let input { Self.feed(&rest, to: input) }
      // This comes before reading: an ended program has written everything.
      let hasEnded = waitpid(process, &status, WNOHANG) == process
      var watched = pollfd(fd: output.ends[0], events: Int16(POLLIN), revents: 0)
      if !hasEnded {
        _ = self.clock.waitingForOthers { poll(&watched, 1, 50) }
        // A program that has closed its output, and keeps running, would be asked again at once.
        if watched.revents & Int16(POLLIN) == 0, watched.revents & Int16(POLLHUP) != 0 {
          _ = poll(nil, 0, 50)
        }
      }
      if !self.drain(output.ends[0], into: &bytes) { failure = .wroteTooMuch }
      if hasEnded { break }
      if failure == nil, self.clock.now >= deadline { failure = .tookTooLong }
      if failure != nil {
        kill(-group, SIGKILL)
        kill(process, SIGKILL)
        self.waitForEnd(of: process)
        break
      }
    }
    // Whatever it has left behind in its group.
    kill(-group, SIGKILL)
    if let failure { throw failure }
    let signal = status & 0x7f
    return Result(output: bytes, exitCode: signal == 0 ? (status >> 8) & 0xff : nil)
  }

  /// Waits for a program that was killed: not for long, because it may belong to another user.
  private func waitForEnd(of process: pid_t) {
    let deadline = self.clock.now + .seconds(1)
    var status: Int32 = 0
    while waitpid(process, &status, WNOHANG) == 0, self.clock.now < deadline {
      _ = self.clock.waitingForOthers { poll(nil, 0, 10) }
    }
  }

  /// Writes as much as there is room for, and closes the pipe after the last byte.
  private static func feed(_ rest: inout ArraySlice<UInt8>, to pipe: Pipe) {
    guard pipe.ends[1] >= 0 else { return }
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(pipe.ends[1], $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      // A program that reads no more does not need the rest.
      rest = count < 0 ? [] : rest.dropFirst(count)
    }
    pipe.close(1)
  }

  /// Takes what is there. Returns false when there is more than the limit.
  private func drain(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    while bytes.count <= self.byteLimit ?? 0 {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      // 0 at the end; an error when nothing is there yet.
      guard count > 0 else { return true }
      bytes += chunk[..<count]
    }
    return false
  }

  /// A pipe to another program. Its ends are closed when it goes, unless they were before.
  private final class Pipe {
    /// For reading and for writing; -1 when closed.
    private(set) var ends: [Int32] = [-1, -1]

    /// - Parameter blockingEnd: the end for the other program; this process does not wait at its own.
    init(blockingEnd: Int) throws(Failure) {
      guard c_pipe2(&self.ends, O_CLOEXEC) == 0 else { throw .notStarted(errno) }
      _ = fcntl(self.ends[1 - blockingEnd], F_SETFL, O_NONBLOCK)
    }

    deinit {
      for end in 0...1 { self.close(end) }
    }

    func close(_ end: Int) {
      guard self.ends[end] >= 0 else { return }
      Glibc.close(self.ends[end])
      self.ends[end] = -1
    }
  }
}
