extension Frame {
  /// A part of a timestamp in a time zone, or a duration in whole units.
  func timePart(_ node: Instruction, _ operand: Value, zone: Value?) -> Value {
    switch (operand, zone) {
    case (.duration(let nanoseconds), nil):
      let unit: Int64
      switch node.operation {
      case .hours: unit = 3_600_000_000_000
      case .minutes: unit = 60_000_000_000
      case .seconds: unit = 1_000_000_000
      case .milliseconds: return .int(nanoseconds / 1_000_000 % 1000)
      default: return self.failure(.noOverload, node)
      }
      return .int(nanoseconds / unit)
    case (.timestamp(let time), nil): return .int(Self.part(node.operation, of: time, offset: 0))
    case (.timestamp(let time), .string(let name)):
      // A zone that is not among the last ones is read from a file.
      guard self.spend(8) else { return self.failure(.tooExpensive, node) }
      guard let offset = self.timeZones.offset(ofZone: name, at: time.seconds) else {
        return self.failure(.unknownTimeZone, node)
      }
      return .int(Self.part(node.operation, of: time, offset: offset))
    default: return self.failure(.noOverload, node)
    }
  }

  /// - Parameter offset: of the local time, in seconds east of UTC.
  private static func part(_ operation: Operation, of time: Timestamp, offset: Int64) -> Int64 {
    let seconds = time.seconds + offset
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let second = seconds - days * 86_400
    switch operation {
    case .hours: return second / 3600
    case .minutes: return second / 60 % 60
    case .seconds: return second % 60
    case .milliseconds: return Int64(time.nanoseconds / 1_000_000)
    case .dayOfWeek: return ((days + 4) % 7 + 7) % 7
    default: break
    }
    let date = CalendarDate(days: days)
    switch operation {
    case .fullYear: return date.year
    case .month: return date.month - 1
    case .date: return date.day
    case .dayOfMonth: return date.day - 1
    default: return days - CalendarDate.days(year: date.year, month: 1, day: 1)
    }
  }
}
