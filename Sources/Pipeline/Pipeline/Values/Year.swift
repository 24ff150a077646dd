internal import Bytes

/// The year of a date.
enum Year {
  static func isKnown(of type: ColumnType) -> Bool {
    switch type {
    case .date, .timestamp, .string: true
    default: false
    }
  }

  /// - Returns: nil for text that does not begin with a date.
  static func of(_ cell: UInt64, _ type: ColumnType, _ row: RecordBatch.Row) -> Int64? {
    let number = Int64(bitPattern: cell)
    switch type {
    case .date(.days): return CalendarDate(day: number).year
    case .date(.milliseconds):
      return CalendarDate(day: number.flooredDivision(by: 86_400_000).quotient).year
    case .timestamp(let unit, _):
      let day = number.flooredDivision(by: 86_400 * unit.perSecond).quotient
      return CalendarDate(day: day).year
    default:
      let text = UnsafeRawBufferPointer(row.bytes(cell))
      guard DateText.leadingDay(text) != nil, text.count == 10 || "T ".utf8.contains(text[10])
      else { return nil }
      return DateText.number(text, 0, 4)
    }
  }
}
