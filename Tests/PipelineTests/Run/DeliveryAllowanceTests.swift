import Testing

@testable import Pipeline

@Suite("Allowance of deliveries")
struct DeliveryAllowanceTests {
  @Test(
    "The allowance is what remains without the reserve and without requested events",
    arguments: [
      (remaining: 1000, reserve: 200, delivered: 0, outstanding: 100, allows: true),
      (1000, 200, 699, 100, true), (1000, 200, 700, 100, false), (1000, 200, 900, 0, false),
      (100, 200, 0, 0, false), (-5, 0, 0, 0, false), (1, 0, 0, 0, true),
      (.min, .max, 0, 100, false), (.max, 0, 5, 100, true),
    ] as [(remaining: Int64, reserve: Int64, delivered: Int, outstanding: Int, allows: Bool)])
  func received(
    remaining: Int64, reserve: Int64, delivered: Int, outstanding: Int, allows: Bool
  ) {
    let allowance = DeliveryAllowance(
      remaining: remaining, reserve: reserve, outstanding: outstanding)
    #expect(allowance.received(delivered) == allows)
    #expect(allowance.isSpent == !allows)
  }

  @Test("A new figure is reduced by the deliveries since the previous reading")
  func renewed() {
    let allowance = DeliveryAllowance(remaining: 1000, reserve: 100, outstanding: 10)
    #expect(allowance.left == 900)
    #expect(allowance.received(300))
    // Nothing of the 300 need be in the 990 yet.
    allowance.renew(remaining: 990)
    #expect(allowance.left == 590)
    #expect(allowance.received(100))
    // The 300 are, and others have used 200.
    allowance.renew(remaining: 500)
    #expect(allowance.left == 300)
    // Yesterday's deliveries do not count any more.
    allowance.renew(remaining: 5000)
    #expect(allowance.left == 4900)
  }

  @Test("A spent allowance stays spent because it has ended streams")
  func spent() {
    let allowance = DeliveryAllowance(remaining: 100, reserve: 0, outstanding: 10)
    #expect(!allowance.received(95))
    allowance.renew(remaining: 5000)
    #expect(allowance.isSpent)
  }
}
