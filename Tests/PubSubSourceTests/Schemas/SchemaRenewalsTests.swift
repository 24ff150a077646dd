import Testing

@testable import PubSubSource

@Suite("Schema renewals") struct SchemaRenewalsTests {
  private let start = ContinuousClock.now

  private func at(_ seconds: Int) -> ContinuousClock.Instant { self.start + .seconds(seconds) }

  @Test("A schema is fetched again for each event that was received after the last fetch")
  func laterEvents() {
    var renewals = SchemaRenewals()
    let answers = [(0, 1), (0, 2), (1, 2), (2, 3)].map { received, now in
      renewals.begin("A", receivedAt: self.at(received), now: self.at(now))
    }
    #expect(answers == [true, false, false, true])
    let isOtherAllowed = renewals.begin("B", receivedAt: self.at(0), now: self.at(3))
    #expect(isOtherAllowed)
  }

  @Test("However many events prove a schema outdated, fetches are few")
  func limit() {
    var renewals = SchemaRenewals()
    let fetches = (0..<3600).filter {
      renewals.begin("A", receivedAt: self.at($0), now: self.at($0))
    }
    #expect(fetches.prefix(5) == [0, 1, 2, 3, 4])
    #expect(fetches.count == 5 + 59)
    // After a rest, several may follow each other again.
    let later = (7200..<7210).filter {
      renewals.begin("A", receivedAt: self.at($0), now: self.at($0))
    }
    #expect(later == [7200, 7201, 7202, 7203, 7204])
  }
}
