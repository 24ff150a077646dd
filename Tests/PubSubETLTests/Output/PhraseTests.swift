import Glibc
import Testing

@testable import PubSubETL

@Suite("Human-readable numbers and times")
struct PhraseTests {
  @Test(
    "Counts have grouped thousands and the right singular or plural",
    arguments: [(0, "0 events"), (1, "1 event"), (7512, "7,512 events")])
  func counts(number: Int, text: String) {
    #expect(Phrase.count(number, "event") == text)
  }

  @Test("An irregular plural is given")
  func plural() { #expect(Phrase.count(2, "entity", "entities") == "2 entities") }

  @Test(
    "Durations are whole seconds from one second on",
    arguments: [
      (50, "50 ms"), (1000, "1 s"), (1091, "1 s"), (1600, "2 s"), (59_700, "1 min 00 s"),
      (125_000, "2 min 05 s"), (-5, "0 ms"),
    ])
  func durations(milliseconds: Int, text: String) {
    #expect(Phrase.duration(.milliseconds(milliseconds)) == text)
  }

  @Test("A time on another day includes its date")
  func localTime() {
    let now: Int64 = 1_771_300_995_000
    let today = Phrase.localTime(now, now: now)
    #expect(today.count == 8 && today.hasSuffix(":15"))
    let earlier = Phrase.localTime(now - 3 * 86_400_000, now: now)
    #expect(earlier.hasPrefix("2026-02-1") && earlier.hasSuffix(" \(today)"))
  }
}
