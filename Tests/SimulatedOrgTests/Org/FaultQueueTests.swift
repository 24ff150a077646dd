import Testing

@testable import SimulatedOrg

@Suite("Scripted faults")
struct FaultQueueTests {
  @Test("A fault hits the calls it is meant for, as often as it says, in order")
  func order() {
    var queue = FaultQueue()
    queue.add(Fault(.drop, topic: "/data/A", times: 2))
    queue.add(Fault(.stall))
    queue.add(Fault(.goAway, method: "GetTopic"))
    #expect(queue.take(method: "Subscribe", topic: "/data/B")?.action == .stall)
    #expect(queue.take(method: "Subscribe", topic: "/data/B") == nil)
    #expect(queue.take(method: "Subscribe", topic: "/data/A")?.action == .drop)
    #expect(queue.take(method: "Subscribe", topic: "/data/A")?.action == .drop)
    #expect(queue.take(method: "Subscribe", topic: "/data/A") == nil)
    #expect(queue.take(method: "GetTopic", topic: nil)?.action == .goAway)
    #expect(queue.count == 0)
  }
}
