import Clocks
import Testing

@testable import EventLoop

@Suite("A clock that a simulator serves")
struct ServedClockTests {
  @Test("Only an address on this machine is one")
  func addresses() {
    #expect(ServedClock.port(of: "127.0.0.1:8080") == 8080)
    for address in [
      "", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "10.0.0.1:8080",
      "localhost.example.com:8080", "127.0.0.1:80:80", "127.0.0.1.example.com:80",
    ] {
      #expect(ServedClock.port(of: address) == nil, "\(address)")
    }
  }

  @Test("A thread counts as asleep by its state, with its context switches")
  func readsStatus() throws {
    func switches(_ state: String) -> (voluntary: UInt64, involuntary: UInt64)? {
      let text = """
        Name:\tclock
        State:\t\(state)
        Threads:\t3
        voluntary_ctxt_switches:\t27
        nonvoluntary_ctxt_switches:\t4

        """
      return Quiescence.switches(Array(text.utf8)[...])
    }
    let asleep = try #require(switches("S (sleeping)"))
    #expect(asleep == (27, 4))
    for state in ["R (running)", "D (disk sleep)", "T (stopped)"] {
      #expect(switches(state) == nil)
    }
    #expect(Quiescence.switches(Array("State:\tS (sleeping)\n".utf8)[...]) == nil)
  }

  @Test("While somebody outside is waited for, the process is not quiet")
  func waitsForOthers() {
    ProcessClock.waitingForOthers {
      #expect(ProcessClock.waitsForOthers)
      #expect(Quiescence.sample() == nil)
    }
  }

  @Test("A loop announces nothing, and no time is skipped, unless the clock is served")
  func unserved() async throws {
    #expect(!ProcessClock.isServed)
    #expect(ProcessClock.skippedTime == .zero)
    #expect(ProcessClock.wallOffset == 0)
    try await ProcessClock.sleep(for: .milliseconds(1))
    let sleeper = Task { try await ProcessClock.sleep(for: .seconds(3600)) }
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
  }
}
