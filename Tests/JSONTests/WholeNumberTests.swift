import JSON
import Testing

@Suite("Whole numbers") struct WholeNumberTests {
  @Test(
    "A whole number with a fraction or an exponent is exact",
    arguments: [
      ("0", 0), ("-0.0", 0), ("0e999999999999999999999", 0), ("3.0", 3), ("-3.00", -3),
      ("1e2", 100), ("1E+2", 100), ("120e-1", 12), ("1.20e1", 12), ("0.012e3", 12),
      ("9.007199254740993e15", 9_007_199_254_740_993), ("1e18", 1_000_000_000_000_000_000),
      ("9007199254740993.0", 9_007_199_254_740_993),
      ("9.223372036854775807e18", Int64.max), ("-9.223372036854775808e18", Int64.min),
    ])
  func exact(text: String, number: Int64) throws {
    #expect(try JSONValue(parsing: text).wholeNumber == number)
  }

  @Test(
    "A fraction, or a number beyond 64 bits, is not a whole number",
    arguments: [
      "0.5", "1e-1", "12e-2", "1.5e0", "9.223372036854775808e18", "1e19", "1e999999999999999999999",
      "1e-999999999999999999999", "1e9223372036854775807", "1.5e-9223372036854775808", "\"1\"",
      "true",
    ])
  func refused(text: String) throws {
    #expect(try JSONValue(parsing: text).wholeNumber == nil)
  }
}
