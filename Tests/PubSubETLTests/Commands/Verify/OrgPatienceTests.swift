import Testing

@testable import PubSubETL

@Suite("Waits of verify") struct OrgPatienceTests {
  private final class Time {
    var now = ContinuousClock.now
  }

  @Test("A wait without progress is reported now and then, and ends after its limit")
  func ends() throws {
    let time = Time()
    var patience = OrgPatience(limit: .seconds(100)) { time.now }
    patience.begin("the records of Account")
    #expect(try patience.look(at: time.now + .seconds(29)) == nil)
    patience.note(job: "750A", 0)
    let first = try patience.look(at: time.now + .seconds(30))
    #expect(
      first == "waiting for the records of Account: no progress for 30 s (Bulk job 750A, with 0 "
        + "records so far)")
    #expect(try patience.look(at: time.now + .seconds(59)) == nil)
    #expect(try patience.look(at: time.now + .seconds(60)) != nil)
    let end = #expect(throws: RunFailure.self) { try patience.look(at: time.now + .seconds(100)) }
    #expect(end?.exitCode == .unavailable)
    #expect(end?.message.contains("Bulk job 750A") == true)
    #expect(end?.message.contains("retry.give_up_after") == true)
  }

  @Test("More rows of a job are progress, and the same number is not")
  func progress() throws {
    let time = Time()
    var patience = OrgPatience(limit: .seconds(100)) { time.now }
    patience.begin("the records of Account")
    for count in [0, 10, 20] {
      time.now += .seconds(90)
      patience.note(job: "750A", count)
    }
    time.now += .seconds(99)
    patience.note(job: "750A", 20)
    _ = try patience.look(at: time.now)
    #expect(throws: RunFailure.self) { try patience.look(at: time.now + .seconds(1)) }
  }
}
