internal import Bytes
internal import Glibc

// Values in PostgreSQL's binary formats (the …_recv functions in src/backend/utils/adt). Memory is
// allocated only when the buffer grows.

extension ByteBuffer {
  /// U+FFFD, which replaces characters that a text cannot hold.
  private static let replacement: StaticString = "\u{FFFD}"

  /// Appends text in which U+FFFD replaces U+0000.
  ///
  /// - Returns: how many were replaced.
  mutating func appendPostgresText(_ text: UnsafeBufferPointer<UInt8>) -> Int {
    guard let start = text.baseAddress, text.count > 0 else { return 0 }
    guard memchr(start, 0, text.count) != nil else {
      self.append(text)
      return 0
    }
    var replacedCount = 0
    for byte in text {
      if byte == 0 {
        replacedCount += 1
        self.append(utf8: Self.replacement)
      } else {
        self.append(byte)
      }
    }
    return replacedCount
  }

  /// Appends JSON text. The escape of U+0000, which jsonb refuses, becomes the escape of U+FFFD.
  ///
  /// - Returns: how many were replaced.
  mutating func appendPostgresJSON(_ text: UnsafeBufferPointer<UInt8>) -> Int {
    guard let start = text.baseAddress else { return 0 }
    var replacedCount = 0
    var rest = text[...]
    while !rest.isEmpty {
      guard let found = memchr(start + rest.startIndex, 0x5C, rest.count) else { break }
      let place = start.distance(to: UnsafePointer(found.assumingMemoryBound(to: UInt8.self)))
      // Steps over an escaped backslash as a whole: `\\u0000` only looks like an escape of U+0000.
      let isUnicode = place + 1 < text.count && text[place + 1] == UInt8(ascii: "u")
      let end = min(place + (isUnicode ? 6 : 2), text.count)
      if end - place == 6, memcmp(start + place, "\\u0000", 6) == 0 {
        self.append(UnsafeBufferPointer(rebasing: rest[..<place]))
        self.append(utf8: "\\ufffd")
        replacedCount += 1
      } else {
        self.append(UnsafeBufferPointer(rebasing: rest[..<end]))
      }
      rest = text[end...]
    }
    self.append(UnsafeBufferPointer(rebasing: rest))
    return replacedCount
  }

  /// The 16 bytes of 32 hexadecimal digits in groups of 8-4-4-4-12; false, and nothing appended,
  /// for any other text.
  mutating func appendPostgresUUID(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.count == 36 else { return false }
    let out = self.reserve(16)
    var digitCount = 0
    for (index, byte) in text.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return false }
        continue
      }
      guard let digit = byte.hexDigit else { return false }
      out[digitCount / 2] = digitCount % 2 == 0 ? digit << 4 : out[digitCount / 2] | digit
      digitCount += 1
    }
    self.commit(16)
    return true
  }

  /// Days since 2000-01-01; false outside 4713-01-01 BC … 5874897-12-31.
  ///
  /// - Parameter days: since 1970-01-01.
  mutating func appendPostgresDate(days: Int64) -> Bool {
    let (days, overflow) = days.subtractingReportingOverflow(10957)
    // Julian days 0 ..< 2147483494 (IS_VALID_DATE in utils/date.h).
    guard !overflow, days >= -2_451_545, days < 2_147_483_494 - 2_451_545 else { return false }
    self.appendBigEndian(Int32(days))
    return true
  }

  /// Microseconds since 2000-01-01T00:00:00; false outside 4713-01-01 BC … 294276-12-31.
  ///
  /// - Parameter milliseconds: since 1970-01-01T00:00:00.
  mutating func appendPostgresTimestamp(milliseconds: Int64) -> Bool {
    self.append(PostgresTimestamp(milliseconds: milliseconds))
  }

  /// - Parameter microseconds: since 1970-01-01T00:00:00.
  mutating func appendPostgresTimestamp(microseconds: Int64) -> Bool {
    self.append(PostgresTimestamp(microseconds: microseconds))
  }

  private mutating func append(_ time: PostgresTimestamp?) -> Bool {
    guard let time else { return false }
    self.appendBigEndian(time.microseconds)
    return true
  }

  /// Microseconds since midnight; false outside 00:00 … 24:00.
  mutating func appendPostgresTime(microseconds: Int64?) -> Bool {
    guard let microseconds, (0...86_400_000_000).contains(microseconds) else { return false }
    self.appendBigEndian(microseconds)
    return true
  }

  /// - Parameter duration: months, days, milliseconds, each a little-endian UInt32.
  mutating func appendPostgresInterval(_ duration: UnsafeBufferPointer<UInt8>) -> Bool {
    precondition(duration.count == 12, "a duration of \(duration.count) bytes")
    let raw = UnsafeRawBufferPointer(duration)
    func part(_ offset: Int) -> UInt32 {
      UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    guard let months = Int32(exactly: part(0)), let days = Int32(exactly: part(4)) else {
      return false
    }
    self.appendBigEndian(Int64(part(8)) * 1000)
    self.appendBigEndian(days)
    self.appendBigEndian(months)
    return true
  }

  // MARK: text[]

  /// Begins an array of text (array_recv); elements follow, each a length and a text.
  ///
  /// - Returns: the array's place, for `finishTextArray`.
  mutating func beginTextArray() -> Int {
    defer {
      self.appendBigEndian(1 as Int32)  // dimensions
      self.appendBigEndian(0 as Int32)  // has nulls
      self.appendBigEndian(25 as UInt32)  // text
      self.appendBigEndian(0 as Int32)  // elements
      self.appendBigEndian(1 as Int32)  // lower bound
    }
    return self.count
  }

  mutating func finishTextArray(_ place: Int, elementCount: Int, hasNulls: Bool = false) {
    let header = UnsafeMutableRawPointer(self.base + place)
    guard elementCount > 0 else {
      // `{}` has no dimensions.
      header.storeBytes(of: 0 as UInt32, as: UInt32.self)
      self.truncate(to: place + 12)
      return
    }
    if hasNulls { header.storeBytes(of: Int32(1).bigEndian, toByteOffset: 4, as: Int32.self) }
    header.storeBytes(of: Int32(elementCount).bigEndian, toByteOffset: 12, as: Int32.self)
  }

  /// Appends the values of a multi-select picklist (`Red;Blue`) as an array, empty for empty text.
  ///
  /// - Returns: how many U+0000 were replaced.
  mutating func appendPostgresChoices(_ text: UnsafeBufferPointer<UInt8>) -> Int {
    let array = self.beginTextArray()
    var elementCount = 0
    var replacedCount = 0
    var rest = text[...]
    while !text.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: ";")) ?? rest.endIndex
      let length = self.beginField()
      replacedCount += self.appendPostgresText(UnsafeBufferPointer(rebasing: rest[..<end]))
      self.finishField(length)
      elementCount += 1
      guard end < rest.endIndex else { break }
      rest = rest[(end + 1)...]
    }
    self.finishTextArray(array, elementCount: elementCount)
    return replacedCount
  }

  // MARK: Length words

  /// Leaves room for a length word; `finishField` fills it.
  @inline(__always)
  mutating func beginField() -> Int {
    self.appendBigEndian(0 as Int32)
    return self.count
  }

  @inline(__always)
  mutating func finishField(_ start: Int) {
    UnsafeMutableRawPointer(self.base + (start - 4)).storeBytes(
      of: Int32(self.count - start).bigEndian, as: Int32.self)
  }
}

/// Rounds down; nil for results of more than 64 bits.
extension Int64 {
  var millisecondsAsMicroseconds: Int64? {
    let (value, overflow) = self.multipliedReportingOverflow(by: 1000)
    return overflow ? nil : value
  }

  var nanosecondsAsMicroseconds: Int64 { self.dividedRoundingDown(by: 1000) }

  func dividedRoundingDown(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = self.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
