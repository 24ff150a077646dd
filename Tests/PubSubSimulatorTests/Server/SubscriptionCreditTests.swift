import SimulatedOrg
import Testing

@testable import PubSubSimulator

@Suite("Credit of a subscription")
struct SubscriptionCreditTests {
  @Test("Requests add up to at most 100")
  func additive() throws {
    var credit = SubscriptionCredit(at: 0)
    try credit.add(3)
    try credit.add(4)
    #expect(credit.pending == 7)
    try credit.add(.max)
    #expect(credit.pending == 100)
    credit.responded(60, at: 5)
    #expect(credit.pending == 40)
    try credit.add(100)
    #expect(credit.pending == 100)
  }

  @Test("A request for zero or fewer events ends the call", arguments: [0, -1, Int32.min])
  func notPositive(requested: Int32) {
    var credit = SubscriptionCredit(at: 0)
    #expect(throws: ServiceFault.requestedEventsInvalid) { try credit.add(requested) }
  }

  @Test("With credit, silence leads to a keepalive, and every response restarts the wait")
  func keepalive() throws {
    var credit = SubscriptionCredit(at: 1000)
    try credit.add(2)
    #expect(credit.due(at: 90_999, keepaliveInterval: 90_000) == .nothing)
    #expect(credit.due(at: 91_000, keepaliveInterval: 90_000) == .keepalive)
    credit.responded(1, at: 91_000)
    #expect(credit.due(at: 180_999, keepaliveInterval: 90_000) == .nothing)
  }

  @Test("Without credit, no keepalive is sent, and the call ends 60 s after the last response")
  func expiry() throws {
    var credit = SubscriptionCredit(at: 0)
    try credit.add(2)
    credit.responded(2, at: 10_000)
    #expect(credit.due(at: 69_999, keepaliveInterval: 1000) == .nothing)
    #expect(credit.due(at: 70_000, keepaliveInterval: 1000) == .expired)
    try credit.add(1)
    #expect(credit.due(at: 70_000, keepaliveInterval: 90_000) == .nothing)
  }
}
