internal import Bytes
internal import JSON

/// A value in PostgreSQL's binary format, as written by the encoder.
struct PostgresValue {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.rest = bytes }

  /// Nil when fewer bytes are left.
  mutating func take<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    guard self.rest.count >= Number.bitWidth / 8 else { return nil }
    return self.take(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  mutating func take(_ count: Int) -> ArraySlice<UInt8> {
    defer { self.rest = self.rest.dropFirst(count) }
    return self.rest.prefix(count)
  }

  /// The value as a line of a file would have it, with NaN and infinities as text.
  func json(as type: PostgresType) -> JSONValue {
    var value = self
    switch type {
    case .boolean: return .boolean(self.rest.first == 1)
    case .smallint: return .integer(value.take(Int16.self) ?? 0)
    case .integer: return .integer(value.take(Int32.self) ?? 0)
    case .bigint: return .integer(value.take(Int64.self) ?? 0)
    case .real:
      let number = Float(bitPattern: value.take(UInt32.self) ?? 0)
      return Self.number(Double(number)) { $0.append(number) }
    case .doublePrecision:
      let number = Double(bitPattern: value.take(UInt64.self) ?? 0)
      return Self.number(number) { $0.append(number) }
    case .numeric: return value.numeric()
    case .text: return .string(String(decoding: self.rest, as: UTF8.self))
    case .uuid: return .string(Self.uuid(self.rest))
    case .bytea:
      return .string("\\x" + self.rest.hex)
    case .date:
      let day = Int64(value.take(Int32.self) ?? 0) + Self.daysBefore2000
      return .string(UTCTime.date(day: day))
    case .time:
      let time = value.take(Int64.self) ?? 0
      return Self.text { $0.appendTime(time, .microseconds) }
    case .timestamp, .timestamptz:
      let time = (value.take(Int64.self) ?? 0) &+ Self.daysBefore2000 * 86_400_000_000
      return Self.text { $0.appendTimestamp(time, .microseconds, isLocal: type == .timestamp) }
    case .interval:
      let microseconds = value.take(Int64.self) ?? 0
      let (days, months) = (value.take(Int32.self) ?? 0, value.take(Int32.self) ?? 0)
      return .string("\(months) months \(days) days \(microseconds) microseconds")
    case .jsonb:
      // The first byte is the version of the format.
      return (try? JSONValue(parsing: Array(self.rest.dropFirst()))) ?? nil
    case .textArray: return value.texts()
    }
  }

  /// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
  private static let daysBefore2000: Int64 = 10957

  private static func text(_ write: (inout ByteBuffer) -> Void) -> JSONValue {
    var buffer = ByteBuffer(capacity: 32)
    write(&buffer)
    return .string(String(decoding: buffer.bytes, as: UTF8.self))
  }

  private static func number(
    _ number: Double, _ write: (inout ByteBuffer) -> Void
  ) -> JSONValue {
    guard number.isFinite else {
      return .string(number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity")
    }
    return JSONValue(.number(Self.text(write).string ?? "0"))
  }

  private static func uuid(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.enumerated().map { index, byte in
      ([4, 6, 8, 10].contains(index) ? "-" : "") + (byte < 16 ? "0" : "")
        + String(byte, radix: 16)
    }.joined()
  }

  /// Digits of base 10000; the first `weight` + 1 of them come before the point.
  private mutating func numeric() -> JSONValue {
    let digitCount = Int(self.take(UInt16.self) ?? 0)
    let weight = Int(self.take(Int16.self) ?? 0)
    let sign = self.take(UInt16.self) ?? 0
    let scale = Int(self.take(UInt16.self) ?? 0)
    switch sign {
    case 0xC000: return "NaN"
    case 0xD000: return "Infinity"
    case 0xF000: return "-Infinity"
    default: break
    }
    let digits = (0..<digitCount).map { _ in self.take(UInt16.self) ?? 0 }
    func group(_ place: Int) -> String {
      let index = weight - place
      let text = digits.indices.contains(index) ? String(digits[index]) : "0"
      return String(repeating: "0", count: 4 - text.count) + text
    }
    var whole = ""
    for place in stride(from: max(weight, 0), through: 0, by: -1) { whole += group(place) }
    whole = String(whole.drop { $0 == "0" })
    var fraction = ""
    var place = -1
    while fraction.count < scale {
      fraction += group(place)
      place -= 1
    }
    let text = (sign == 0x4000 ? "-" : "") + (whole.isEmpty ? "0" : whole)
    return JSONValue(.number(text + (scale > 0 ? "." + fraction.prefix(scale) : "")))
  }

  /// An array of one dimension, or an empty one.
  private mutating func texts() -> JSONValue {
    let dimensionCount = self.take(Int32.self) ?? 0
    _ = self.take(8)
    guard dimensionCount > 0 else { return [] }
    let count = self.take(Int32.self) ?? 0
    _ = self.take(4)
    return .array(
      (0..<count).map { _ in
        let byteCount = self.take(Int32.self) ?? -1
        return byteCount < 0
          ? nil : .string(String(decoding: self.take(Int(byteCount)), as: UTF8.self))
      })
  }
}
