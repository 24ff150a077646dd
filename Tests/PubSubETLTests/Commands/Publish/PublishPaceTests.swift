import Testing

@testable import PubSubETL

@Suite("Pace of publishing") struct PublishPaceTests {
  private static let start = ContinuousClock.now

  /// Moments in milliseconds after the start.
  private static func due(
    _ pace: inout PublishPace, _ events: Int, at milliseconds: Int
  ) -> Int64 {
    let due = pace.due(events: events, now: Self.start + .milliseconds(milliseconds))
    return Int64(((due - Self.start) / .milliseconds(1)).rounded())
  }

  @Test("Without a rate, all events may be sent at once, in full requests")
  func unlimited() {
    var pace = PublishPace(rate: nil)
    #expect(pace.maxEventsOfRequest == 200)
    #expect([5, 5, 5].map { Self.due(&pace, 200, at: $0) } == [5, 5, 5])
  }

  @Test("Requests are spread evenly, and unused time is not made up for")
  func spread() {
    var pace = PublishPace(rate: 100)
    #expect(pace.maxEventsOfRequest == 10)
    #expect(Self.due(&pace, 10, at: 0) == 0)
    #expect(Self.due(&pace, 10, at: 1) == 100)
    #expect(Self.due(&pace, 5, at: 100) == 200)
    #expect(Self.due(&pace, 10, at: 5000) == 5000)
    #expect(Self.due(&pace, 10, at: 5000) == 5100)
  }

  @Test(
    "A request has the events of a tenth of a second",
    arguments: [(0.001, 1), (1, 1), (19, 1), (25, 2), (1999, 199), (1_000_000, 200)])
  func sizes(rate: Double, events: Int) {
    #expect(PublishPace(rate: rate).maxEventsOfRequest == events)
  }
}
