import EventLoop
import Glibc
import Testing

@Suite("Event loop")
struct EventLoopTests {
  @Test("The loop runs work in order on its own thread") func order() async throws {
    let loop = try EventLoop(name: "test")
    #expect(!loop.isCurrent)
    let log = Lock<[Int]>([])
    await withCheckedContinuation { continuation in
      for index in 0..<1000 { loop.execute { log.withLock { $0.append(index) } } }
      loop.execute {
        if loop.isCurrent { continuation.resume() }
      }
    }
    #expect(log.withLock { $0 } == Array(0..<1000))
  }

  @Test("Tasks that prefer the loop run on it") func preferredTasks() async throws {
    let loop = try EventLoop(name: "test")
    let wasCurrent = await withTaskExecutorPreference(loop) {
      await Task.yield()
      return loop.isCurrent
    }
    #expect(wasCurrent)
  }

  @Test("Timers fire in order of deadline unless they are cancelled") func timers() async throws {
    let loop = try EventLoop(name: "test")
    let log = Lock<[String]>([])
    await withCheckedContinuation { continuation in
      loop.execute {
        let now = ContinuousClock.now
        loop.schedule(at: now + .milliseconds(20)) { continuation.resume() }
        loop.schedule(at: now + .milliseconds(2)) { log.withLock { $0.append("second") } }
        loop.schedule(at: now + .milliseconds(1)) { log.withLock { $0.append("first") } }
        let cancelled = loop.schedule(at: now + .milliseconds(1)) {
          log.withLock { $0.append("cancelled") }
        }
        loop.cancel(cancelled)
      }
    }
    #expect(log.withLock { $0 } == ["first", "second"])
  }

  @Test("A registered descriptor is reported while it is ready, and not after deregistration")
  func reportsReadiness() async throws {
    let loop = try EventLoop(name: "test")
    let ends = try Pipe()
    let received: [UInt8] = try await withCheckedThrowingContinuation { continuation in
      loop.execute {
        do {
          try loop.register(ends.readEnd, interest: .readable) { readiness in
            var buffer = [UInt8](repeating: 0, count: 16)
            let count = read(ends.readEnd, &buffer, buffer.count)
            loop.deregister(ends.readEnd)
            continuation.resume(
              returning: readiness.contains(.readable) ? Array(buffer.prefix(count)) : [])
          }
        } catch { continuation.resume(throwing: error) }
      }
      let bytes: [UInt8] = [1, 2, 3]
      _ = write(ends.writeEnd, bytes, bytes.count)
    }
    #expect(received == [1, 2, 3])
    // A second event would resume the continuation twice, which traps.
    _ = write(ends.writeEnd, [4] as [UInt8], 1)
    await withCheckedContinuation { done in loop.execute { done.resume() } }
    loop.stop()
  }

  @Test("An epoll error names the call and its errno")
  func namesTheRefusedCall() async throws {
    let loop = try EventLoop(name: "test")
    let error: SystemCallError? = await withCheckedContinuation { continuation in
      loop.execute {
        do throws(SystemCallError) {
          try loop.register(-1, interest: .readable) { _ in }
          continuation.resume(returning: nil)
        } catch { continuation.resume(returning: error) }
      }
    }
    let refused = try #require(error)
    #expect(refused.call == "epoll_ctl")
    #expect(refused.number == EBADF)
    #expect(refused.description == "epoll_ctl: Bad file descriptor (errno 9)")
    #expect(!refused.isExhaustion)
  }

  @Test(
    "The error for an exhausted resource names the limit",
    arguments: [
      (
        "epoll_create1", EMFILE,
        "raise this user's limit of open files (ulimit -n) to at least 256"
      ),
      ("eventfd", ENFILE, "raise the system's limit of open files (sysctl fs.file-max)"),
      (
        "pthread_create", EAGAIN,
        "raise the limit of processes and threads (ulimit -u), or that of the service or container "
          + "(TasksMax, --pids-limit)"
      ),
    ])
  func namesTheLimit(call: String, number: Int32, remedy: String) {
    let error = SystemCallError(call, number)
    #expect(error.isExhaustion)
    #expect(error.description.hasPrefix("\(call): "))
    #expect(error.description.hasSuffix("(errno \(number)); \(remedy)"))
  }
}

/// Both ends are closed with the object.
private final class Pipe: Sendable {
  let readEnd: Int32
  let writeEnd: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemCallError("pipe") }
    (self.readEnd, self.writeEnd) = (ends[0], ends[1])
  }

  deinit {
    close(self.readEnd)
    close(self.writeEnd)
  }
}

@Suite("Limit of open files")
struct RuntimeDescriptorsTests {
  @Test("Files of output get what the hard limit leaves beside the run's own descriptors")
  func room() async {
    await #expect(processExitsWith: .success) {
      Self.setLimit(soft: 512, hard: 2048)
      #expect(RuntimeDescriptors.makeRoom(forFiles: 250) == 250)
      #expect(Self.soft == 512)
      #expect(RuntimeDescriptors.makeRoom(forFiles: 1500) == 1500)
      #expect(Self.soft == 1548)
      #expect(RuntimeDescriptors.makeRoom(forFiles: 10_000) == 2000)
      #expect(Self.soft == 2048)
      Self.setLimit(soft: 40, hard: 40)
      #expect(RuntimeDescriptors.makeRoom(forFiles: 250) == 1)
    }
  }

  private static func setLimit(soft: rlim_t, hard: rlim_t) {
    var limit = rlimit(rlim_cur: soft, rlim_max: hard)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static var soft: rlim_t {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return limit.rlim_cur
  }
}
