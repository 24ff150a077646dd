internal import Bytes

/// A time zone as the IANA database has it, in the format TZif (RFC 9636).
struct TimeZoneData {
  /// Since 1970, ascending, and the offset that begins there.
  private var transitions: [(seconds: Int64, offset: Int64)] = []
  private var firstOffset: Int64 = 0
  /// The rule for the time after the last transition.
  private var rule: TimeZoneRule?

  /// Nil when the bytes are not of the format, version 2 or later.
  init?(_ bytes: [UInt8]) {
    guard let old = Header(bytes, at: 0), old.version >= UInt8(ascii: "2"),
      let header = Header(bytes, at: 44 + old.byteCount(timeSize: 4))
    else { return nil }
    let times = header.start + 44
    let kinds = times + header.timeCount * 8
    let types = kinds + header.timeCount
    let end = header.start + 44 + header.byteCount(timeSize: 8)
    guard end <= bytes.count, header.typeCount > 0 else { return nil }
    let offsets = (0..<header.typeCount).map { type in
      Int64(Int32(truncatingIfNeeded: Self.number(bytes, types + type * 6, 4)))
    }
    self.firstOffset = offsets[0]
    for index in 0..<header.timeCount {
      let type = Int(bytes[kinds + index])
      guard type < offsets.count else { return nil }
      self.transitions.append((Self.number(bytes, times + index * 8, 8), offsets[type]))
    }
    // Between line ends.
    if end < bytes.count, bytes[end] == UInt8(ascii: "\n") {
      self.rule = TimeZoneRule(Array(bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "\n") }))
    }
  }

  /// Seconds east of UTC.
  func offset(at seconds: Int64) -> Int64 {
    if let last = self.transitions.last, seconds >= last.seconds {
      return self.rule?.offset(at: seconds) ?? last.offset
    }
    if self.transitions.isEmpty, let rule { return rule.offset(at: seconds) }
    var low = 0
    var high = self.transitions.count
    while low < high {
      let middle = (low + high) / 2
      if self.transitions[middle].seconds <= seconds { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? self.firstOffset : self.transitions[low - 1].offset
  }

  /// Big-endian, sign-extended.
  private static func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> Int64 {
    var value: Int64 = Int8(bitPattern: bytes[start]) < 0 ? -1 : 0
    for byte in bytes[start..<start + count] { value = value << 8 | Int64(byte) }
    return value
  }

  private struct Header {
    var start: Int
    var version: UInt8
    var utcCount, standardCount, leapCount, timeCount, typeCount, nameCount: Int

    init?(_ bytes: [UInt8], at start: Int) {
      guard start + 44 <= bytes.count, bytes[start..<start + 4].elementsEqual("TZif".utf8) else {
        return nil
      }
      self.start = start
      self.version = bytes[start + 4]
      let counts = (0..<6).map { Int(TimeZoneData.number(bytes, start + 20 + $0 * 4, 4)) }
      guard counts.allSatisfy({ 0...65_536 ~= $0 }) else { return nil }
      (self.utcCount, self.standardCount, self.leapCount) = (counts[0], counts[1], counts[2])
      (self.timeCount, self.typeCount, self.nameCount) = (counts[3], counts[4], counts[5])
    }

    /// The number of bytes that follow the header.
    func byteCount(timeSize: Int) -> Int {
      self.timeCount * (timeSize + 1) + self.typeCount * 6 + self.nameCount
        + self.leapCount * (timeSize + 4) + self.standardCount + self.utcCount
    }
  }
}

/// A rule of the form of POSIX's `TZ`: `CET-1CEST,M3.5.0,M10.5.0/3`.
struct TimeZoneRule {
  private struct Change {
    enum Day {
      /// 1 to 365, without 29 February.
      case julian(Int64)
      /// 0 to 365.
      case ordinal(Int64)
      case weekday(month: Int64, week: Int64, day: Int64)
    }
    var day: Day
    /// Seconds of local time since midnight.
    var time: Int64

    /// The time of the change, in seconds of local time since 1970.
    func seconds(inYear year: Int64) -> Int64 {
      let firstDay = CalendarDate.days(year: year, month: 1, day: 1)
      let isLeap = CalendarDate.dayCount(year: year, month: 2) == 29
      let days: Int64
      switch self.day {
      case .julian(let day): days = firstDay + day - 1 + (isLeap && day >= 60 ? 1 : 0)
      case .ordinal(let day): days = firstDay + day
      case .weekday(let month, let week, let day):
        let first = CalendarDate.days(year: year, month: month, day: 1)
        let weekday = ((first + 4) % 7 + 7) % 7
        var date = (day - weekday + 7) % 7 + (week - 1) * 7
        while date >= CalendarDate.dayCount(year: year, month: month) { date -= 7 }
        days = first + date
      }
      return days * 86_400 + self.time
    }
  }

  private var standard: Int64
  private var summer: (offset: Int64, begin: Change, end: Change)?

  /// Nil when the text is not such a rule.
  init?(_ text: [UInt8]) {
    var reader = Reader(text: text)
    guard reader.name(), let west = reader.time() else { return nil }
    self.standard = -west
    guard !reader.isAtEnd else { return }
    guard reader.name() else { return nil }
    var offset = self.standard + 3600
    if !reader.isNext(",") {
      guard let west = reader.time() else { return nil }
      offset = -west
    }
    guard reader.skip(","), let begin = reader.change(), reader.skip(","),
      let end = reader.change(), reader.isAtEnd
    else { return nil }
    self.summer = (offset, begin, end)
  }

  func offset(at seconds: Int64) -> Int64 {
    guard let summer else { return self.standard }
    let local = seconds + self.standard
    let days = local >= 0 ? local / 86_400 : (local - 86_399) / 86_400
    let year = CalendarDate(days: days).year
    let begin = summer.begin.seconds(inYear: year) - self.standard
    let end = summer.end.seconds(inYear: year) - summer.offset
    // South of the equator summer goes over the end of the year.
    let isSummer =
      begin < end ? seconds >= begin && seconds < end : seconds >= begin || seconds < end
    return isSummer ? summer.offset : self.standard
  }

  private struct Reader {
    var text: [UInt8]
    var index = 0

    var isAtEnd: Bool { self.index == self.text.count }

    func isNext(_ character: Unicode.Scalar) -> Bool {
      self.index < self.text.count && self.text[self.index] == UInt8(ascii: character)
    }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
      guard self.isNext(character) else { return false }
      self.index += 1
      return true
    }

    /// Letters, or anything between `<` and `>`.
    mutating func name() -> Bool {
      let start = self.index
      if self.skip("<") {
        while self.index < self.text.count, !self.isNext(">") { self.index += 1 }
        return self.skip(">")
      }
      while self.index < self.text.count, self.text[self.index].isNameStart { self.index += 1 }
      return self.index > start
    }

    mutating func number() -> Int64? {
      let start = self.index
      var value: Int64 = 0
      while self.index < self.text.count, self.text[self.index].isDigit, self.index - start < 4 {
        value = value * 10 + Int64(self.text[self.index] - UInt8(ascii: "0"))
        self.index += 1
      }
      return self.index > start ? value : nil
    }

    /// `[+-]h[:m[:s]]` in seconds.
    mutating func time() -> Int64? {
      let isNegative = self.isNext("-")
      if isNegative || self.isNext("+") { self.index += 1 }
      guard var seconds = self.number().map({ $0 * 3600 }) else { return nil }
      for unit: Int64 in [60, 1] where self.skip(":") {
        guard let value = self.number() else { return nil }
        seconds += value * unit
      }
      return isNegative ? -seconds : seconds
    }

    mutating func change() -> Change? {
      let day: Change.Day
      if self.skip("M") {
        guard let month = self.number(), self.skip("."), let week = self.number(), self.skip("."),
          let weekday = self.number(), 1...12 ~= month, 1...5 ~= week, 0...6 ~= weekday
        else { return nil }
        day = .weekday(month: month, week: week, day: weekday)
      } else if self.skip("J") {
        guard let number = self.number(), 1...365 ~= number else { return nil }
        day = .julian(number)
      } else {
        guard let number = self.number(), 0...365 ~= number else { return nil }
        day = .ordinal(number)
      }
      guard self.skip("/") else { return Change(day: day, time: 7200) }
      return self.time().map { Change(day: day, time: $0) }
    }
  }
}
