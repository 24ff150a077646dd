internal import Bytes

/// A format of dates and times: a subset of `strftime`.
struct TimeFormat {
  static let directives = "%Y %m %d %H %I %p %M %S %f %z %%"

  private enum Element {
    case literal(UInt8)
    case year, month, day, hour, hour12, half, minute, second, fraction, zone
  }

  /// A parsed time.
  struct Moment {
    /// Since 1970.
    var day: Int64
    /// Seconds of the day.
    var seconds: Int64 = 0
    var nanoseconds: Int64 = 0
    /// Seconds east of UTC; nil if the text has no zone.
    var offset: Int64?
  }

  private var elements: [Element] = []
  /// Whether the text has a date.
  let isWhole: Bool

  /// - Returns: nil for unknown directives.
  init?(_ text: String) {
    var bytes = Array(text.utf8)[...]
    var fields: Set<UInt8> = []
    while let byte = bytes.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        self.elements.append(.literal(byte))
        continue
      }
      guard let directive = bytes.popFirst(), let element = Self.element(directive) else {
        return nil
      }
      fields.insert(directive)
      self.elements.append(element)
    }
    self.isWhole = fields.isSuperset(of: "Ymd".utf8)
  }

  private static func element(_ directive: UInt8) -> Element? {
    switch directive {
    case UInt8(ascii: "Y"): .year
    case UInt8(ascii: "m"): .month
    case UInt8(ascii: "d"): .day
    case UInt8(ascii: "H"): .hour
    case UInt8(ascii: "I"): .hour12
    case UInt8(ascii: "p"): .half
    case UInt8(ascii: "M"): .minute
    case UInt8(ascii: "S"): .second
    case UInt8(ascii: "f"): .fraction
    case UInt8(ascii: "z"): .zone
    case UInt8(ascii: "%"): .literal(directive)
    default: nil
    }
  }

  /// `UTC`, `Z` or `+01:00`, as seconds east of UTC.
  static func offset(_ text: String) -> Int64? {
    text == "UTC" ? 0 : Array(text.utf8).withUnsafeBytes { DateText.zone($0, 0) }
  }

  /// - Returns: nil for text of another form, and for dates and times that do not exist.
  func read(_ text: UnsafeRawBufferPointer) -> Moment? {
    var (year, month, day): (Int64, Int64, Int64) = (0, 1, 1)
    var (hour, minute, second): (Int64, Int64, Int64) = (0, 0, 0)
    var isAfternoon: Bool?
    var moment = Moment(day: 0)
    var place = 0
    func number(_ count: Int, _ range: ClosedRange<Int64>) -> Int64? {
      guard let value = DateText.number(text, place, count), range.contains(value) else {
        return nil
      }
      place += count
      return value
    }
    for element in self.elements {
      switch element {
      case .literal(let byte):
        guard place < text.count, text[place] == byte else { return nil }
        place += 1
      case .year:
        guard let value = number(4, 0...9999) else { return nil }
        year = value
      case .month:
        guard let value = number(2, 1...12) else { return nil }
        month = value
      case .day:
        guard let value = number(2, 1...31) else { return nil }
        day = value
      case .hour:
        guard let value = number(2, 0...23) else { return nil }
        hour = value
      case .hour12:
        guard let value = number(2, 1...12) else { return nil }
        hour = value % 12
      case .minute:
        guard let value = number(2, 0...59) else { return nil }
        minute = value
      case .second:
        guard let value = number(2, 0...59) else { return nil }
        second = value
      case .half:
        guard place + 1 < text.count, text[place + 1] | 0x20 == UInt8(ascii: "m") else {
          return nil
        }
        switch text[place] | 0x20 {
        case UInt8(ascii: "a"): isAfternoon = false
        case UInt8(ascii: "p"): isAfternoon = true
        default: return nil
        }
        place += 2
      case .fraction:
        guard let (nanoseconds, digits) = DateText.fraction(text, place) else { return nil }
        moment.nanoseconds = nanoseconds
        place += digits
      case .zone:
        guard let offset = DateText.zone(text, place) else { return nil }
        moment.offset = offset
        place = text.count
      }
    }
    guard place == text.count, let date = DateText.day(year: year, month: month, day: day) else {
      return nil
    }
    if let isAfternoon, isAfternoon { hour += 12 }
    moment.day = date
    moment.seconds = hour * 3600 + minute * 60 + second
    return moment
  }

  /// ISO 8601: `2026-02-17`, `2026-02-17T04:03:15.5Z`, with a space instead of the `T`, with or
  /// without a zone.
  static func readISO(_ text: UnsafeRawBufferPointer) -> Moment? {
    guard let day = DateText.leadingDay(text) else { return nil }
    var moment = Moment(day: day)
    if text.count == 10 { return moment }
    guard DateText.has(text, 10, "T") || DateText.has(text, 10, " "),
      let clock = DateText.clock(text, 11)
    else { return nil }
    (moment.seconds, moment.nanoseconds) = (clock.seconds, clock.nanoseconds)
    if clock.end == text.count { return moment }
    guard let offset = DateText.zone(text, clock.end) else { return nil }
    moment.offset = offset
    return moment
  }

  /// Appends a time, written in the zone of its offset.
  func append(_ moment: Moment, to buffer: inout ByteBuffer) {
    let date = CalendarDate(day: moment.day)
    let hour = moment.seconds / 3600
    for element in self.elements {
      switch element {
      case .literal(let byte): buffer.append(byte)
      case .year: Self.append(date.year, 4, to: &buffer)
      case .month: Self.append(date.month, 2, to: &buffer)
      case .day: Self.append(date.dayOfMonth, 2, to: &buffer)
      case .hour: Self.append(hour, 2, to: &buffer)
      case .hour12: Self.append((hour + 11) % 12 + 1, 2, to: &buffer)
      case .half: buffer.append(utf8: hour < 12 ? "AM" : "PM")
      case .minute: Self.append(moment.seconds / 60 % 60, 2, to: &buffer)
      case .second: Self.append(moment.seconds % 60, 2, to: &buffer)
      case .fraction: Self.append(moment.nanoseconds / 1000, 6, to: &buffer)
      case .zone:
        let offset = moment.offset ?? 0
        buffer.append(UInt8(ascii: offset < 0 ? "-" : "+"))
        Self.append(abs(offset) / 3600, 2, to: &buffer)
        Self.append(abs(offset) / 60 % 60, 2, to: &buffer)
      }
    }
  }

  private static func append(_ value: Int64, _ width: Int, to buffer: inout ByteBuffer) {
    if value < 0 { buffer.append(UInt8(ascii: "-")) }
    var limit: UInt64 = 1
    for _ in 1..<width { limit *= 10 }
    while limit > max(value.magnitude, 1) {
      buffer.append(UInt8(ascii: "0"))
      limit /= 10
    }
    buffer.append(value.magnitude)
  }
}
