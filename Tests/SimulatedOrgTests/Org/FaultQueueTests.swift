import Testing

@testable import SimulatedOrg

@Suite("Scripted faults")
struct FaultQueueTests {
  @Test("A fault hits the calls that it names, in order and as often as configured")
  func order() {
    var queue = FaultQueue()
    queue.add(Fault(.drop, topic: "/data/A", times: 2))
    queue.add(Fault(.stall))
    queue.add(Fault(.goAway, method: "GetTopic"))
    func take(_ method: String, _ topic: String? = nil) -> Fault.Action? {
      queue.take(FaultQueue.Call(method: method, topic: topic, at: 0))?.action
    }
    #expect(take("Subscribe", "/data/B") == .stall)
    #expect(take("Subscribe", "/data/B") == nil)
    #expect(take("Subscribe", "/data/A") == .drop)
    #expect(take("Subscribe", "/data/A") == .drop)
    #expect(take("Subscribe", "/data/A") == nil)
    #expect(take("GetTopic") == .goAway)
    #expect(queue.count == 0)
  }

  private func call(_ next: Int, replayID: Bool = false) -> FaultQueue.Call {
    FaultQueue.Call(
      method: "Subscribe", topic: "/data/A", at: 0, nextEvent: next, hasReplayID: replayID)
  }

  @Test("A fault at an event waits for the call that delivers the event, the nearest event first")
  func events() {
    var queue = FaultQueue()
    queue.add(Fault(.drop, moment: .event(20)))
    queue.add(Fault(.stall, moment: .event(10)))
    let first = queue.take(self.call(3))
    #expect(first?.action == .stall)
    #expect(first?.afterEvents == 6)
    first.map { queue.putBack($0) }
    #expect(queue.take(self.call(10))?.action == .drop)
    #expect(queue.take(self.call(10)) == nil)
    let again = queue.takeAtEvent(topic: "/data/A", nextEvent: 9)
    #expect(again?.action == .stall)
    #expect(again?.afterEvents == 0)
    #expect(queue.count == 0)
  }

  @Test("The n-th call is counted among all calls that the fault could hit")
  func calls() {
    var queue = FaultQueue()
    queue.add(Fault(.drop, times: 2, moment: .call(3)))
    let hits = (0..<6).map { _ in queue.take(self.call(0)) != nil }
    #expect(hits == [false, false, true, true, false, false])
  }

  @Test("Equal seeds hit the same calls")
  func probability() {
    func hits(_ seed: UInt64) -> [Bool] {
      var queue = FaultQueue()
      queue.add(Fault(.drop, times: 1000, moment: .probability(0.3, seed: seed)))
      return (0..<200).map { _ in queue.take(self.call(0)) != nil }
    }
    #expect(hits(1) == hits(1))
    #expect(hits(1) != hits(2))
    #expect((30...90).contains(hits(1).count { $0 }))
  }

  @Test("A time-of-day range may extend past midnight")
  func timeOfDay() {
    var queue = FaultQueue()
    queue.add(Fault(.drop, times: 1000, moment: .timeOfDay(from: 1380, to: 60)))
    let day: Int64 = 86_400_000 * 20_000
    let hits = (0..<24).map { hour in
      queue.take(
        FaultQueue.Call(method: "Subscribe", at: day + hour * 3_600_000, nextEvent: 0)) != nil
    }
    #expect(hits.enumerated().filter { $0.element }.map(\.offset) == [0, 23])
  }

  @Test("Only a call with a replay ID can be refused because of it")
  func replayIDs() {
    var queue = FaultQueue()
    queue.add(
      Fault(.status(3, code: "subscription.fetch.replayid.corrupted", message: ""), times: 1))
    #expect(queue.take(self.call(0)) == nil)
    #expect(queue.take(self.call(0, replayID: true)) != nil)
  }
}
