import Testing

@Suite("Functions")
struct FunctionTests {
  @Test(
    "String functions give the values of the specification",
    arguments: [
      ("size('日本語😀')", "int 4"), ("'ab'.size()", "int 2"), ("size(b'\\xff\\xfe')", "int 2"),
      ("'hello'.contains('ell')", "bool true"), ("'hello'.contains('')", "bool true"),
      ("''.contains('a')", "bool false"), ("'hello'.startsWith('he')", "bool true"),
      ("'he'.startsWith('hello')", "bool false"), ("'hello'.endsWith('llo')", "bool true"),
      ("''.endsWith('')", "bool true"), ("'hello'.matches('l+')", "bool true"),
      ("'hello'.matches('^l')", "bool false"), ("matches('abc', '^a.c$')", "bool true"),
      ("'日本'.matches('^..$')", "bool true"), ("'a'.matches('(')", "type error"),
      ("'a'.matches(dyn('('))", "error: the text is an invalid regular expression"),
      ("'a\\x00b'.matches('^a.b$')", "bool true"), ("'a'.matches('(a)\\\\1')", "type error"),
      ("'a'.size(1)", "type error"), ("'a'.charAt(0)", "unsupported"), ("foo(1)", "type error"),
      ("'a'.foo()", "type error"),
    ])
  func strings(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Values convert between types without loss, or fail",
    arguments: [
      ("int('-12')", "int -12"), ("int('1.5')", "error: the text cannot be converted to this type"),
      ("int('')", "error: the text cannot be converted to this type"),
      ("int(' 1')", "error: the text cannot be converted to this type"),
      ("int(-7.9)", "int -7"), ("int(1e99)", "error: the value is out of the range of the type"),
      ("int(-9223372036854775808.0)", "error: the value is out of the range of the type"),
      ("int(0.0 / 0.0)", "error: the value is out of the range of the type"),
      ("int(18446744073709551615u)", "error: the value is out of the range of the type"),
      ("uint(-1)", "error: the value is out of the range of the type"), ("uint(3.9)", "uint 3"),
      ("uint(18446744073709551616.0)", "error: the value is out of the range of the type"),
      ("uint('300')", "uint 300"), ("double('6.02e23')", "double 6.02e+23"),
      ("double('x')", "error: the text cannot be converted to this type"),
      ("double('0x1p3')", "error: the text cannot be converted to this type"),
      ("double(' 1')", "error: the text cannot be converted to this type"),
      ("double('-inf')", "double \"-Infinity\""),
      ("double(9223372036854775807)", "double 9223372036854775808.0"),
      ("string(1.0)", "string \"1\""), ("string(-0.0045)", "string \"-0.0045\""),
      ("string(1u)", "string \"1\""), ("string(true)", "string \"true\""),
      ("string(b'\\303\\277')", "string \"ÿ\""),
      ("string(b'\\xff')", "error: the bytes are invalid UTF-8"), ("bytes('ÿ')", "bytes \"w78=\""),
      ("bool('true')", "bool true"), ("bool('F')", "bool false"),
      ("bool('TrUe')", "error: the text cannot be converted to this type"),
      ("type(1u)", "type \"uint\""), ("type(null)", "type \"null_type\""),
      ("type([])", "type \"list\""), ("type(dyn({}))", "type \"map\""),
      ("string([])", "type error"),
      ("string(null)", "type error"),
    ])
  func conversions(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Timestamps are parsed, compared and added to durations",
    arguments: [
      ("timestamp('2009-02-13T23:31:30Z')", "google.protobuf.Timestamp \"2009-02-13T23:31:30Z\""),
      (
        "timestamp('2009-02-13T23:31:30.5+02:30')",
        "google.protobuf.Timestamp \"2009-02-13T21:01:30.5Z\""
      ),
      ("timestamp(0)", "google.protobuf.Timestamp \"1970-01-01T00:00:00Z\""),
      (
        "string(timestamp('1969-12-31T23:59:59.000000001Z'))",
        "string \"1969-12-31T23:59:59.000000001Z\""
      ),
      ("int(timestamp('1969-12-31T23:59:59.9Z'))", "int -1"),
      ("timestamp('0000-01-01T00:00:00Z')", "error: the text cannot be converted to this type"),
      ("timestamp('10000-01-01T00:00:00Z')", "error: the text cannot be converted to this type"),
      ("timestamp('2023-02-29T00:00:00Z')", "error: the text cannot be converted to this type"),
      ("timestamp('2024-02-29T24:00:00Z')", "error: the text cannot be converted to this type"),
      ("timestamp('2024-02-29 12:00:00Z')", "error: the text cannot be converted to this type"),
      ("timestamp('2024-02-29')", "error: the text cannot be converted to this type"),
      ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "error: the result is out of range"),
      ("timestamp('0001-01-01T00:00:00Z') - duration('1ns')", "error: the result is out of range"),
      (
        "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
        "error: the result is out of range"
      ),
      (
        "timestamp('2009-02-13T23:31:00Z') - timestamp('2009-02-13T23:29:00Z')",
        "google.protobuf.Duration \"120s\""
      ),
      ("timestamp(0) + duration('-1ns') < timestamp(0)", "bool true"),
      ("timestamp(0) + timestamp(0)", "type error"),
    ])
  func timestamps(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Durations are parsed and written",
    arguments: [
      ("duration('1h30m')", "5400s"), ("duration('-1.5s')", "-1.5s"), ("duration('0')", "0s"),
      ("duration('1h2m3s4ms5us6ns')", "3723.004005006s"), ("duration('1.5h')", "5400s"),
      ("duration('1µs')", "0.000001s"), ("duration('.5s')", "0.5s"),
      ("duration('600s') - duration('42s')", "558s"),
      ("duration('9223372036s') + duration('854775807ns')", "9223372036.854775807s"),
    ])
  func durations(source: String, expected: String) {
    #expect(outcome(source) == "google.protobuf.Duration \"\(expected)\"")
  }

  @Test(
    "Text that is not a duration is refused",
    arguments: ["", "s", "1", "1x", "1 s", "--1s", "1s-1s", "320000000000s", ".s", "1e3s"])
  func badDurations(text: String) {
    #expect(
      outcome("duration('\(text)')") == "error: the text cannot be converted to this type")
  }

  @Test(
    "The parts of a timestamp are given in UTC and in time zones",
    arguments: [
      ("getFullYear()", 2009), ("getMonth()", 1), ("getDate()", 13), ("getDayOfMonth()", 12),
      ("getDayOfWeek()", 5), ("getDayOfYear()", 43), ("getHours()", 23), ("getMinutes()", 31),
      ("getSeconds()", 30), ("getMilliseconds()", 123), ("getDate('Australia/Sydney')", 14),
      ("getHours('02:00')", 1), ("getHours('-09:30')", 14), ("getMinutes('Asia/Kathmandu')", 16),
      ("getDayOfMonth('US/Central')", 12), ("getHours('America/St_Johns')", 20),
    ])
  func parts(call: String, expected: Int) {
    #expect(outcome("timestamp('2009-02-13T23:31:30.123456789Z').\(call)") == "int \(expected)")
  }

  @Test(
    "Time zones follow their transitions and, after the last one, their rule",
    arguments: [
      ("2026-01-15T12:00:00Z", "Europe/Berlin", 13), ("2026-07-15T12:00:00Z", "Europe/Berlin", 14),
      ("2100-01-15T12:00:00Z", "Europe/Berlin", 13), ("2100-07-15T12:00:00Z", "Europe/Berlin", 14),
      ("2100-01-15T12:00:00Z", "Australia/Sydney", 23),
      ("2100-07-15T12:00:00Z", "Australia/Sydney", 22),
      ("2026-03-29T00:59:59Z", "Europe/Berlin", 1), ("2026-03-29T01:00:00Z", "Europe/Berlin", 3),
      ("2099-03-29T00:59:59Z", "Europe/Berlin", 1), ("2099-03-29T01:00:00Z", "Europe/Berlin", 3),
      ("2026-10-25T00:59:59Z", "Europe/Berlin", 2), ("2026-10-25T01:00:00Z", "Europe/Berlin", 2),
      ("1800-01-01T12:00:00Z", "Europe/Berlin", 12), ("2026-01-15T12:00:00Z", "Asia/Tokyo", 21),
    ])
  func summerTime(time: String, zone: String, hour: Int) {
    #expect(outcome("timestamp('\(time)').getHours('\(zone)')") == "int \(hour)")
  }

  @Test(
    "Text that is not a time zone is refused",
    arguments: [
      "", "Europe/Nowhere", "../../etc/passwd", "/etc/passwd", "+25:00", "2:00", "posixrules/x",
    ])
  func badZones(zone: String) {
    #expect(
      outcome("timestamp(0).getHours('\(zone)')")
        == "error: no such time zone; write 'UTC', an offset as '+02:00', or a name of IANA")
  }

  @Test(
    "Durations are given in whole units",
    arguments: [
      ("duration('10000s').getHours()", 2), ("duration('3730s').getMinutes()", 62),
      ("duration('3730s').getSeconds()", 3730), ("duration('123.321s').getMilliseconds()", 321),
      ("duration('-90s').getMinutes()", -1),
    ])
  func durationParts(source: String, expected: Int) {
    #expect(outcome(source) == "int \(expected)")
  }
}
