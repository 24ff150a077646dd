import EventLoop
import Testing

@testable import FileSink

@Suite("Monitor")
struct MonitorTests {
  @Test("Two threads pass a value back and forth, and each sees what the other wrote")
  func passing() throws {
    let monitor = Monitor((value: 0, isOdd: false))
    try Thread.detach(name: "other") {
      for _ in 0..<10_000 {
        monitor.wait { state -> Void? in
          guard state.isOdd else { return nil }
          state.value += 1
          state.isOdd = false
          return ()
        }
        monitor.wake()
      }
    }
    for round in 0..<10_000 {
      monitor.withLock { $0.isOdd = true }
      monitor.wake()
      let value = monitor.wait { $0.isOdd ? nil : $0.value }
      #expect(value == round + 1)
    }
  }
}
