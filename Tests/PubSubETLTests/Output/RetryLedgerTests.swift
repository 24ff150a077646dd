import JSON
import Testing

@testable import PubSubETL

@Suite("Retry ledger")
struct RetryLedgerTests {
  private let topic = RetryNotices.Place.topic("/data/A")

  @Test("Equal errors are one entry with a count, whatever IDs they contain")
  func equal() {
    var ledger = RetryLedger()
    for (number, id) in ["1f-a", "2e-b", "3d-c"].enumerated() {
      ledger.failed(
        self.topic, code: "unavailable", "Subscribe to /data/A: down. rpcId: \(id)",
        delay: .seconds(1), at: Int64(number * 1000))
    }
    ledger.failed(.login, code: nil, "login: no such host", delay: .seconds(1), at: 9)
    #expect(ledger.entries.map(\.count) == [3, 1])
    #expect(ledger.entries[0].firstAt == 0)
    #expect(ledger.entries[0].lastAt == 2000)
    #expect(ledger.entries[0].message.hasSuffix("1f-a"))
  }

  @Test("A wait is listed with its attempts and the next one until it succeeds")
  func waiting() {
    var ledger = RetryLedger()
    let sink = RetryNotices.Place.sink("db")
    #expect(ledger.waiting.isEmpty)
    ledger.failed(sink, code: "57P03", "starting up", delay: .seconds(2), at: 1000)
    ledger.failed(sink, code: "08006", "lost", delay: .seconds(4), at: 3000)
    ledger.failed(
      self.topic, code: "topic_not_found", "gone", isRefusal: true, delay: .seconds(600), at: 500)
    #expect(ledger.waiting.map(\.place) == [self.topic, sink])
    #expect(ledger.waiting[1].since == 1000)
    #expect(ledger.waiting[1].attempts == 2)
    #expect(ledger.waiting[1].message == "lost")
    #expect(ledger.waiting[1].nextAttemptAt == 7000)
    let hasWaited = [ledger.worked(sink), ledger.worked(sink)]
    #expect(hasWaited == [true, false])
    #expect(ledger.waiting.map(\.isRefusal) == [true])
    #expect(ledger.entries.count == 3)
  }

  @Test("status reads what a run writes about its waits, for any value", arguments: 0..<200)
  func roundTrip(seed: Int) throws {
    let places: [RetryNotices.Place] = [
      .login, .schemas, .topic("/data/\(seed)"), .sink("s\(seed)"),
    ]
    let wait = RetryLedger.Wait(
      place: places[seed % 4], code: seed % 3 == 0 ? nil : "c\(seed)",
      message: "\"\\\u{1}\u{2028} \(seed)", isRefusal: seed % 2 == 0,
      since: Int64(seed) * 19_999_999_937, attempts: seed * 4999 + 1,
      nextAttemptAt: Int64(200 - seed) * 19_999_999_937)
    #expect(RetryLedger.Wait(json: try JSONValue(parsing: Array(wait.json.text().utf8))) == wait)
  }

  @Test("Kinds of errors beyond the limit are counted together")
  func bounded() {
    var ledger = RetryLedger()
    for number in 0..<(RetryLedger.maxEntryCount + 7) {
      ledger.failed(
        .sink("s\(number)"), code: nil, "lost", delay: .zero, at: Int64(number))
    }
    #expect(ledger.entries.count == RetryLedger.maxEntryCount)
    #expect(ledger.otherCount == 7)
  }
}
