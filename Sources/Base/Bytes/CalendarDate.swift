/// A date of the proleptic Gregorian calendar.
package struct CalendarDate {
  package let year: Int64
  /// 1…12
  package let month: Int64
  /// 1…31
  package let dayOfMonth: Int64

  /// - Parameter day: days since 1970-01-01, within what 64-bit milliseconds reach.
  package init(day: Int64) {
    // Days to civil date by eras of 400 years, each beginning on 1 March.
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    self.month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
    self.dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
  }
}

extension Int64 {
  /// The quotient rounded down, and what is left, which is not negative for a positive divisor.
  package func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = self.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
