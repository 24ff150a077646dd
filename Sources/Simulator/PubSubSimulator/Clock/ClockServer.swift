internal import Dispatch
internal import EventLoop
internal import Glibc
internal import RehearsalClock
internal import SimulatedOrg

/// Serves the simulator's time to the programs that are run against it; see `ServedClock` for how it is known
/// that nobody works.
///
/// Driven by one thread, which calls `step`; that thread does not count as working.
package final class ClockServer {
  /// A program.
  private struct Participant {
    var processID: Int32
    var connection: ClockConnection
    var mark: Substring = ""
  }

  /// How long a program may take to answer; it answers `busy` sooner when it works.
  private static let patience: Int32 = 2000

  /// `127.0.0.1:PORT`
  package let address: String
  private let server: SimulatorServer
  private let served: ServedClock
  private let listener: Int32
  private var participants: [Participant] = []
  /// How often time was skipped, and how much of it.
  package private(set) var skips = 0
  package private(set) var skippedMilliseconds: Int64 = 0

  init(server: SimulatorServer, served: ServedClock) throws {
    self.server = server
    self.served = served
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    self.listener = socket(AF_INET, type | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard self.listener >= 0 else { throw SimulatorError.system("socket") }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = self.listener
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 16) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    guard result else {
      let error = SimulatorError.system("listen on 127.0.0.1")
      close(listener)
      throw error
    }
    self.address = "127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
  }

  deinit { close(self.listener) }

  /// Skips to what happens next, if nobody works now.
  ///
  /// - Parameters:
  ///   - limit: epoch milliseconds that are not skipped; nil without any.
  ///   - expecting: programs that are running; before all of them take their time from here, none is skipped.
  /// - Returns: whether time was skipped. Without a program there is nobody whose waits could be.
  package func step(limit: Int64? = nil, expecting processIDs: [Int32] = []) -> Bool {
    self.accept()
    // Keepalives and the like that are due now, also those of programs that go by another clock. It wakes the
    // server's loop, so before anybody is asked.
    let due = self.server.tick()
    guard !self.participants.isEmpty,
      processIDs.allSatisfy({ id in self.participants.contains { $0.processID == id } })
    else { return false }
    guard var next = self.probe(isFirst: true) else { return false }
    guard let own = self.served.quietMark() else { return false }
    if let deadline = self.served.millisecondsToDeadline { next = min(next, deadline) }
    let now = self.server.clock.now
    if let due { next = min(next, due - now) }
    if let limit { next = min(next, limit - now) }
    // What is due already is about to begin.
    guard next > 0, next < .max else { return false }
    guard self.served.quietMark() == own, self.probe(isFirst: false) != nil else { return false }
    self.skip(next)
    return true
  }

  /// Skips while no program is running, and does what is due then.
  package func skipAlone(_ milliseconds: Int64) {
    guard milliseconds > 0 else { return }
    self.skip(milliseconds)
    _ = self.server.tick()
  }

  private func skip(_ milliseconds: Int64) {
    self.server.clock.advance(byMilliseconds: milliseconds)
    // Ours first: a program that wakes up finds us at the new time.
    self.served.skip(milliseconds: milliseconds)
    for participant in self.participants {
      _ = participant.connection.send("skip \(milliseconds)")
    }
    self.skips += 1
    self.skippedMilliseconds += milliseconds
  }

  private func accept() {
    while true {
      let descriptor = Self.connection(from: self.listener)
      guard descriptor >= 0 else { return }
      let connection = ClockConnection(descriptor)
      let words = connection.line(milliseconds: Self.patience)?.split(separator: " ") ?? []
      guard words.count == 3, words[0] == "clock", words[1] == "1", let id = Int32(words[2]),
        connection.send("wall \(self.server.clock.now - SimulatorClock.wallTime)")
      else { continue }
      self.participants.append(Participant(processID: id, connection: connection))
    }
  }

  /// Asks all programs.
  ///
  /// - Parameter isFirst: else their marks have to be those of the first time.
  /// - Returns: milliseconds until the first of them does something by itself; nil when one works.
  private func probe(isFirst: Bool) -> Int64? {
    var next = Int64.max
    var isQuiet = true
    // From behind, because those that have ended are removed.
    for index in self.participants.indices.reversed() {
      let connection = self.participants[index].connection
      guard connection.send("probe"),
        let answer = connection.line(milliseconds: Self.patience)
      else {
        self.participants.remove(at: index)
        isQuiet = false
        continue
      }
      let words = answer.split(separator: " ")
      guard words.count == 3, words[0] == "quiet" else {
        isQuiet = false
        continue
      }
      if isFirst {
        self.participants[index].mark = words[1]
      } else if self.participants[index].mark != words[1] {
        isQuiet = false
      }
      if let deadline = Int64(words[2]) { next = min(next, deadline) }
    }
    return isQuiet ? next : nil
  }

  private static func connection(from listener: Int32) -> Int32 {
    let descriptor = Glibc.accept(listener, nil, nil)
    if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return descriptor
  }
}

extension SimulatorServer {
  /// Begins to serve the time of a server that was made for it. To be called before `start`.
  package func makeClock() throws -> ClockServer {
    guard let served = self.served else {
      throw SimulatorError(.system, "the server goes by the machine's clock")
    }
    return try ClockServer(server: self, served: served)
  }

  /// Does what is due for all connections.
  ///
  /// - Returns: when something is due next, epoch milliseconds; nil for never.
  func tick() -> Int64? {
    let done = DispatchSemaphore(value: 0)
    let next = Lock<Int64?>(nil)
    self.loop.execute {
      let due = self.tickOnce()
      next.withLock { $0 = due }
      done.signal()
    }
    done.wait()
    return next.withLock { $0 }
  }
}
