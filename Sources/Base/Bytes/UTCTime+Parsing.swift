/// Dates and times as Salesforce's REST API writes them, fractions of a second in milliseconds or not at
/// all. Nothing is allocated; nil for any other text.
extension UTCTime {
  /// `2026-02-17`, as days since 1970.
  package static func day(_ text: UnsafeRawBufferPointer) -> Int64? { DateText.day(text) }

  /// `04:03:15.000` from a place on, as milliseconds; and where it ends.
  private static func clock(
    _ text: UnsafeRawBufferPointer, _ start: Int
  ) -> (milliseconds: Int64, end: Int)? {
    guard let clock = DateText.clock(text, start), [0, 3].contains(clock.fractionDigits) else {
      return nil
    }
    return (clock.seconds * 1000 + clock.nanoseconds / 1_000_000, clock.end)
  }

  /// `10:30:00.000Z`, as milliseconds since midnight.
  package static func timeOfDay(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard let (time, end) = Self.clock(text, 0), DateText.has(text, end, "Z"),
      end + 1 == text.count
    else { return nil }
    return time
  }

  /// `2026-02-17T04:03:15.000Z` or with a zone, `+0000` or `+00:00`, as milliseconds since 1970.
  package static func timestamp(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard let day = DateText.leadingDay(text), DateText.has(text, 10, "T"),
      let (time, end) = Self.clock(text, 11), let offset = DateText.zone(text, end)
    else { return nil }
    return day * 86_400_000 + time - offset * 1000
  }
}
