import Pipeline
import Testing

@testable import RESTSource

@Suite("Values from the text of REST and Bulk") struct TextValueTests {
  private static func cell(_ text: String, _ type: ColumnType) -> UInt64? {
    Array(text.utf8).withUnsafeBytes { TextValue.cell($0, as: type) }
  }

  private static func integer(_ text: String, _ type: ColumnType) -> Int64? {
    Self.cell(text, type).map { Int64(bitPattern: $0) }
  }

  @Test(
    "Numbers become doubles",
    arguments: [
      ("3.0", 3.0), ("9.5E8", 9.5e8), ("1.6147805824397E13", 1.6147805824397e13), ("-0.0", -0.0),
      ("1.0E-4", 1e-4), ("39000", 39000), ("0.30000000000000004", 0.1 + 0.2),
      ("1.7976931348623157E308", Double.greatestFiniteMagnitude),
      ("4.9E-324", Double.leastNonzeroMagnitude),
    ])
  func doubles(text: String, expected: Double) {
    #expect(Self.cell(text, .double).map(Double.init(bitPattern:)) == expected)
    #expect(Self.cell(text, .double) == expected.bitPattern)
  }

  @Test(
    "Text that is not a finite decimal number is refused as a double",
    arguments: [
      "", " 1", "1 ", "NaN", "Infinity", "inf", "0x10", "1,5", "1E400", "+1", "--1", "1e", ".5",
      "e5",
    ])
  func noDoubles(text: String) { #expect(Self.cell(text, .double) == nil) }

  @Test("Whole numbers become integers within their width, and true and false become booleans")
  func integers() {
    #expect(Self.integer("39000", .int32) == 39000)
    #expect(Self.integer("-2147483648", .int32) == -2_147_483_648)
    #expect(Self.integer("2147483648", .int32) == nil)
    #expect(Self.integer("3.9E4", .int32) == 39000)
    #expect(Self.integer("3.95", .int32) == nil)
    #expect(Self.integer("123456789012345678", .int64) == 123_456_789_012_345_678)
    #expect(Self.integer("x", .int64) == nil)
    #expect(Self.cell("true", .boolean) == 1)
    #expect(Self.cell("false", .boolean) == 0)
    #expect(Self.cell("True", .boolean) == nil)
  }

  @Test(
    "Calendar dates become days",
    arguments: [
      ("1970-01-01", 0), ("2026-02-17", 20501), ("1969-12-31", -1), ("2000-02-29", 11016),
      ("0001-01-01", -719_162), ("9999-12-31", 2_932_896),
    ])
  func dates(text: String, day: Int64) {
    #expect(Self.integer(text, .date(.days)) == day)
    #expect(Self.integer(text, .date(.milliseconds)) == day * 86_400_000)
  }

  @Test(
    "Text that is not a calendar date is refused",
    arguments: [
      "2026-02-30", "2023-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-01-00",
      "2026-1-01",
      "2026-01-01 ", "26-01-01", "2026/01/01",
    ])
  func noDates(text: String) { #expect(Self.cell(text, .date(.days)) == nil) }

  @Test(
    "Timestamps with any offset become milliseconds in UTC",
    arguments: [
      ("2026-02-17T04:03:15.000Z", 1_771_300_995_000), ("2026-02-17T04:03:15Z", 1_771_300_995_000),
      ("2026-02-17T04:03:15.123+0000", 1_771_300_995_123),
      ("2026-02-17T05:03:15.000+01:00", 1_771_300_995_000),
      ("2026-02-16T23:03:15.000-0500", 1_771_300_995_000),
    ])
  func timestamps(text: String, milliseconds: Int64) {
    #expect(Self.integer(text, .timestamp(.milliseconds, isLocal: false)) == milliseconds)
  }

  @Test(
    "Text that is not a timestamp is refused",
    arguments: [
      "2026-02-17T04:03:15.000", "2026-02-17 04:03:15.000Z", "2026-02-17T24:00:00.000Z",
      "2026-02-17T04:60:00.000Z", "2026-02-17T04:03:15.0Z", "2026-02-17T04:03:15.000Zx",
      "2026-02-17T04:03:15.000+1", "2026-02-17T04:03:15.000+99:00", "2026-02-17",
    ])
  func noTimestamps(text: String) {
    #expect(Self.cell(text, .timestamp(.milliseconds, isLocal: false)) == nil)
  }

  @Test("Times of day are read") func times() {
    #expect(Self.integer("10:30:00.000Z", .time(.milliseconds)) == 37_800_000)
    #expect(Self.integer("10:30:00.000Z", .time(.microseconds)) == 37_800_000_000)
    for text in ["10:30:00.000", "10:30", "25:00:00.000Z", "10:30:00.000Z "] {
      #expect(Self.cell(text, .time(.milliseconds)) == nil)
    }
  }
}
