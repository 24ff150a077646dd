import Bytes
import Glibc
import Testing

@Suite("Dates and times in UTC")
struct UTCTimeTests {
  @Test("Dates equal those of the C library for every day of eight hundred years")
  func againstGlibc() {
    for day in Int64(-146_097)...146_097 {
      var seconds = Int(day * 86_400)
      var parts = tm()
      gmtime_r(&seconds, &parts)
      func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
      let expected = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
      guard UTCTime.date(day: day) == expected else {
        Issue.record("day \(day): \(UTCTime.date(day: day)), not \(expected)")
        return
      }
    }
  }

  @Test(
    "Times before 1970 and beyond four-digit years are written",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (1_771_300_995_007, "2026-02-17T04:03:15.007Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
      (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
      (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
      (-62_135_596_800_001, "+000000-12-31T23:59:59.999Z"),
      (Int64.max, "+292278994-08-17T07:12:55.807Z"),
      (Int64.min, "-292275055-05-16T16:47:04.192Z"),
    ] as [(Int64, String)])
  func timestamps(milliseconds: Int64, expected: String) {
    #expect(UTCTime.timestamp(milliseconds: milliseconds) == expected)
  }

  @Test("A day begins at midnight, before 1970 too")
  func days() {
    #expect(UTCTime.day(ofMilliseconds: 86_399_999) == 0)
    #expect(UTCTime.day(ofMilliseconds: 86_400_000) == 1)
    #expect(UTCTime.day(ofMilliseconds: -1) == -1)
    #expect(UTCTime.day(ofMilliseconds: -86_400_000) == -1)
    #expect(UTCTime.day(ofMilliseconds: -86_400_001) == -2)
    #expect(UTCTime.day(ofMilliseconds: .min) == -106_751_991_168)
  }
}
