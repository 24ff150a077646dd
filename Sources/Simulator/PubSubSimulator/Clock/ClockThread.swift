internal import EventLoop
internal import Glibc

/// A thread that skips time whenever nobody works, until `stop`.
package final class ClockThread: Sendable {
  /// `127.0.0.1:PORT`
  package let address: String
  private let isStopped = Lock(false)

  init(_ clock: ClockServer) throws {
    self.address = clock.address
    // The thread's alone from here on.
    nonisolated(unsafe) let clock = clock
    try Thread.detach(name: "clock") { [isStopped] in
      while !isStopped.withLock({ $0 }) {
        if !clock.step() { usleep(500) }
      }
    }
  }

  package func stop() { self.isStopped.withLock { $0 = true } }
}

extension SimulatorServer {
  /// Serves the time from a thread of its own. To be called before `start`.
  package func serveClock() throws -> ClockThread { try ClockThread(self.makeClock()) }
}
