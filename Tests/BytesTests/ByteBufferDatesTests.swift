import Bytes
import FoundationEssentials
import TestSupport
import Testing

@Suite("Appending dates and times")
struct ByteBufferDatesTests {
  @Test(
    "Days since 1970 become calendar dates",
    arguments: [
      (0, "1970-01-01"), (-1, "1969-12-31"), (19_143, "2022-05-31"), (11_016, "2000-02-29"),
      (11_017, "2000-03-01"), (-25_508, "1900-03-01"), (-719_162, "0001-01-01"),
      (2_932_896, "9999-12-31"), (2_932_897, "+10000-01-01"), (-719_163, "+00000-12-31"),
      (-719_529, "-00001-12-31"), (.max, "+5881580-07-11"), (.min, "-5877641-06-23"),
    ] as [(Int32, String)])
  func dates(days: Int32, expected: String) {
    #expect(appended { $0.appendDate(days: days) } == expected)
  }

  @Test(
    "Dates from milliseconds are in UTC",
    arguments: [
      (1_653_955_200_000, "2022-05-31"), (1_654_041_599_999, "2022-05-31"), (-1, "1969-12-31"),
      (.max, "+292278994-08-17"), (.min, "-292275055-05-16"),
    ] as [(Int64, String)])
  func datesOfMilliseconds(value: Int64, expected: String) {
    #expect(appended { $0.appendDate(milliseconds: value) } == expected)
  }

  @Test(
    "Times of day have the digits of their unit",
    arguments: [
      (0, .milliseconds, "00:00:00.000"), (86_399_999, .milliseconds, "23:59:59.999"),
      (45_296_789, .milliseconds, "12:34:56.789"), (1, .microseconds, "00:00:00.000001"),
      (86_399_999_999_999, .nanoseconds, "23:59:59.999999999"),
      (90_000_000, .milliseconds, "25:00:00.000"), (-1, .milliseconds, "-00:00:00.001"),
      (.min, .milliseconds, "-2562047788015:12:55.808"),
    ] as [(Int64, ByteBuffer.SecondFraction, String)])
  func times(value: Int64, fraction: ByteBuffer.SecondFraction, expected: String) {
    #expect(appended { $0.appendTime(value, fraction) } == expected)
  }

  @Test("Timestamps in milliseconds are those in microseconds, shortened")
  func usualYears() {
    func check(_ value: Int64) {
      let expected = appended { $0.appendTimestamp(value * 1000, .microseconds) }.dropLast(4) + "Z"
      let text = appended { $0.appendTimestamp(value, .milliseconds) }
      if text != expected { Issue.record("\(value): \(text), not \(expected)") }
    }
    // Each day of two centuries, and every 29th of the others, at changing times.
    for day in stride(from: Int64(-719_600), through: 2_933_000, by: 1)
    where day % 29 == 0 || (-36_500..<36_900).contains(day) {
      check(day * 86_400_000 + (day * 7_919_113 % 86_400_000 + 86_400_000) % 86_400_000)
    }
    // The first and the last one, and others at the ends of days.
    for value in [-62_135_596_800_000, 253_402_300_799_999, 0, 951_782_399_999] as [Int64] {
      for step in [-1, 0, 1] as [Int64] { check(value + step) }
    }
  }

  @Test(
    "Timestamps have 3, 6 or 9 digits",
    arguments: [
      (1_771_300_995_000, .milliseconds, "2026-02-17T04:03:15.000Z"),
      (-1, .milliseconds, "1969-12-31T23:59:59.999Z"),
      (-1, .microseconds, "1969-12-31T23:59:59.999999Z"),
      (-1, .nanoseconds, "1969-12-31T23:59:59.999999999Z"),
      (.max, .milliseconds, "+292278994-08-17T07:12:55.807Z"),
      (.min, .milliseconds, "-292275055-05-16T16:47:04.192Z"),
      (.max, .microseconds, "+294247-01-10T04:00:54.775807Z"),
      (.max, .nanoseconds, "2262-04-11T23:47:16.854775807Z"),
      (.min, .nanoseconds, "1677-09-21T00:12:43.145224192Z"),
    ] as [(Int64, ByteBuffer.SecondFraction, String)])
  func timestamps(value: Int64, fraction: ByteBuffer.SecondFraction, expected: String) {
    #expect(appended { $0.appendTimestamp(value, fraction) } == expected)
    #expect(
      appended { $0.appendTimestamp(value, fraction, isLocal: true) }
        == String(expected.dropLast()))
  }

  @Test("Every day of four centuries follows the previous one")
  func calendar() {
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    var (year, month, day) = (1900, 1, 1)
    for days in Int32(-25_567)..<Int32(-25_567 + 146_097) {
      let expected =
        "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
      let text = appended { $0.appendDate(days: days) }
      if text != expected { Issue.record("day \(days): \(text), not \(expected)") }
      let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
      day += 1
      if day > lengths[month - 1] + (month == 2 && isLeap ? 1 : 0) { (month, day) = (month + 1, 1) }
      if month > 12 { (year, month) = (year + 1, 1) }
    }
    #expect(year == 2300)
  }

  @Test("Random times equal those of Foundation, whose calendar is Julian before 1582-10-15")
  func randomTimestamps() {
    for _ in 0..<20_000 {
      let value = Int64.random(in: -12_219_292_800_000...253_402_300_799_999)
      let (seconds, rest) = value.quotientAndRemainder(dividingBy: 1000)
      let whole = rest < 0 ? seconds - 1 : seconds
      let date = Date(timeIntervalSince1970: Double(whole))
      let fraction = String(1000 + (rest + 1000) % 1000).dropFirst()
      let expected = date.formatted(.iso8601).dropLast() + ".\(fraction)Z"
      let text = appended { $0.appendTimestamp(value, .milliseconds) }
      if text != expected { Issue.record("\(value): \(text), not \(expected)") }
    }
  }
}
