import Testing

@testable import EventLoop

@Suite("Timer queue")
struct TimerQueueTests {
  let start = ContinuousClock.now

  @Test("Only due timers leave the queue, in order of their deadlines") func due() {
    var queue = TimerQueue<Int>()
    var generator = SystemRandomNumberGenerator()
    for value in (0..<500).shuffled(using: &generator) {
      _ = queue.add(value, at: self.start + .milliseconds(value))
    }
    var popped: [Int] = []
    while let value = queue.popDue(now: self.start + .milliseconds(249)) { popped.append(value) }
    #expect(popped == Array(0..<250))
    #expect(queue.nextDeadline() == self.start + .milliseconds(250))
  }

  @Test("Timers with equal deadlines keep their order") func equalDeadlines() {
    var queue = TimerQueue<Int>()
    for value in 0..<20 { _ = queue.add(value, at: self.start) }
    var popped: [Int] = []
    while let value = queue.popDue(now: self.start) { popped.append(value) }
    #expect(popped == Array(0..<20))
    #expect(queue.isEmpty)
  }

  @Test("A cancelled timer never fires among many others") func cancelled() {
    var queue = TimerQueue<Int>()
    let ids = (0..<1000).map { queue.add($0, at: self.start + .seconds($0)) }
    for id in ids where id % 10 != 1 { queue.cancel(id) }
    queue.cancel(ids[0])
    var popped: [Int] = []
    while let value = queue.popDue(now: self.start + .seconds(2000)) { popped.append(value) }
    #expect(popped == stride(from: 0, to: 1000, by: 10).map { $0 }.filter { $0 != 0 })
  }
}
