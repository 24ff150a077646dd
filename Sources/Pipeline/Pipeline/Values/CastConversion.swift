internal import Bytes

/// Converts values of one type to another.
struct CastConversion {
  enum Outcome {
    case number(UInt64)
    /// The bytes are in the buffer.
    case written
    /// Why the conversion failed; without the value.
    case failed(String)
  }

  let source: ColumnType
  let target: CastTarget
  /// The type of the column after the stage.
  let output: ColumnType

  var kind: CastTarget.Kind { self.target.kind }

  /// - Returns: nil if the types cannot be converted.
  init?(of source: ColumnType, to target: CastTarget) {
    guard Self.isPossible(source, target) else { return nil }
    self.source = source
    self.target = target
    self.output =
      switch (target.kind, source) {
      case (.text, _): .string
      case (.boolean, _): .boolean
      case (.integer, _): .int32
      case (.bigint, _): .int64
      case (.double, _): .double
      case (.decimal(let precision, let scale), _): .decimal(precision: precision, scale: scale)
      case (.date, _): .date(.days)
      case (.timestamp, .timestamp(let unit, _)): .timestamp(unit, isLocal: false)
      case (.timestamp, _): .timestamp(.microseconds, isLocal: false)
      }
  }

  private static func isPossible(_ source: ColumnType, _ target: CastTarget) -> Bool {
    switch target.kind {
    case .text:
      target.format == nil ? ValueText.hasText(source) : source.hasDate
    case .boolean: source.isText || source.isInteger || source == .boolean
    case .integer, .bigint: source.isNumber || source.isText || source == .boolean
    case .double, .decimal: source.isNumber || source.isText
    case .date, .timestamp: source.hasDate || source.isText
    }
  }

  /// - Parameters:
  ///   - lost: the batch's `nonfinite`.
  ///   - buffer: empty.
  ///   - number: scratch space for a number.
  func convert(
    _ cell: UInt64, _ row: RecordBatch.Row, lost: [RecordBatch.NonfiniteNumber],
    _ buffer: inout ByteBuffer,
    _ number: inout DecimalNumber
  ) -> Outcome {
    switch self.target.kind {
    case .text:
      guard let format = self.target.format else {
        ValueText.append(cell, self.source, row, lost: lost, to: &buffer)
        return .written
      }
      format.append(self.moment(ofCell: cell), to: &buffer)
      return .written
    case .boolean: return self.boolean(cell, row, &buffer)
    case .integer:
      return self.integer(cell, row, &buffer, &number, Int64(Int32.min)...Int64(Int32.max))
    case .bigint: return self.integer(cell, row, &buffer, &number, .min ... .max)
    case .double: return self.double(cell, row, &buffer, &number)
    case .decimal(let precision, let scale):
      guard self.read(cell, row, &buffer, &number) else { return Self.notANumber }
      return self.decimal(number, precision: precision, scale: scale, &buffer)
    case .date:
      guard let moment = self.moment(cell, row, &buffer) else { return self.notATime }
      // Code that writes dates has 32 bits for the days.
      guard Int32(exactly: moment.day) != nil else {
        return .failed("the value is beyond the range of date")
      }
      guard self.isReadable(day: moment.day) else { return Self.unreadableYear }
      return .number(UInt64(bitPattern: moment.day))
    case .timestamp: return self.timestamp(cell, row, &buffer)
    }
  }

  // MARK: Numbers

  private static let notANumber = Outcome.failed("the value is not a number")

  /// Reads a number by its shortest decimal text.
  private func read(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer,
    _ number: inout DecimalNumber
  ) -> Bool {
    ValueText.append(cell, self.source, row, lost: [], to: &buffer)
    defer { buffer.removeAll() }
    return number.read(buffer.bytes)
  }

  private var rounding: DecimalNumber.Rounding {
    if let rounding = self.target.rounding { return rounding }
    switch self.source {
    case .float, .double: return .halfEven
    default: return .none
    }
  }

  private func integer(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer,
    _ number: inout DecimalNumber, _ range: ClosedRange<Int64>
  ) -> Outcome {
    var value = Int64(bitPattern: cell)
    if !self.source.isInteger, self.source != .boolean {
      guard self.read(cell, row, &buffer, &number) else { return Self.notANumber }
      // Whole numbers only, unless the file says how to round: a count of 2.5 is a mistake.
      let rounding = self.target.rounding ?? .none
      guard let magnitude = number.magnitude(scale: 0, rounding: rounding) else {
        return .failed("the value has a fraction, or is beyond \(self.target.name)")
      }
      let whole = number.isNegative ? -Int128(magnitude) : Int128(magnitude)
      guard let exact = Int64(exactly: whole) else { return self.beyond }
      value = exact
    }
    return range.contains(value) ? .number(UInt64(bitPattern: value)) : self.beyond
  }

  private var beyond: Outcome { .failed("the value is beyond \(self.target.name)") }

  private func double(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer,
    _ number: inout DecimalNumber
  ) -> Outcome {
    switch self.source {
    case .double: return .number(cell)
    case .int32, .int64:
      guard let value = Double(exactly: Int64(bitPattern: cell)) else {
        return .failed("the value has more digits than a double")
      }
      return .number(value.bitPattern)
    default:
      guard self.read(cell, row, &buffer, &number) else { return Self.notANumber }
      number.appendPlain(to: &buffer)
      guard let value = buffer.double else { return self.beyond }
      return .number(value.bitPattern)
    }
  }

  private func decimal(
    _ number: DecimalNumber, precision: Int, scale: Int, _ buffer: inout ByteBuffer
  ) -> Outcome {
    guard let magnitude = number.magnitude(scale: scale, rounding: self.rounding),
      magnitude < Self.power(precision)
    else {
      return .failed(
        "the value does not fit into \(self.target.name): it has too many digits, or decimal "
          + "places that would be lost (see \"rounding\")")
    }
    let value = number.isNegative ? -Int128(magnitude) : Int128(magnitude)
    // The fewest bytes that keep the sign.
    var shift = 120
    while shift > 0, value >> Int128(shift - 1) == 0 || value >> Int128(shift - 1) == -1 {
      shift -= 8
    }
    while shift >= 0 {
      buffer.append(UInt8(truncatingIfNeeded: value >> Int128(shift)))
      shift -= 8
    }
    return .written
  }

  private static func power(_ exponent: Int) -> UInt128 {
    var power: UInt128 = 1
    for _ in 0..<exponent { power *= 10 }
    return power
  }

  // MARK: Booleans

  private func boolean(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer
  ) -> Outcome {
    guard self.source.isText else {
      return cell <= 1 ? .number(cell) : .failed("the value is neither 0 nor 1")
    }
    ValueText.append(cell, self.source, row, lost: [], to: &buffer)
    defer { buffer.removeAll() }
    if self.target.trueTexts.contains(where: { buffer.bytes.elementsEqual($0.utf8) }) {
      return .number(1)
    }
    if self.target.falseTexts.contains(where: { buffer.bytes.elementsEqual($0.utf8) }) {
      return .number(0)
    }
    return .failed("the value is not one of the texts for true and false")
  }

  // MARK: Dates and times

  private var notATime: Outcome {
    .failed(
      "the value is not a date or time "
        + (self.target.format == nil ? "in ISO 8601" : "of the format that the stage names"))
  }

  private static let unreadableYear = Outcome.failed("the value is not in the years 1 to 9999")

  /// Whether readers of lines and tables accept the day: 0001-01-01 to 9999-12-31 for days from
  /// text, which nobody has checked. Other values are written as the org has them.
  private func isReadable(day: Int64) -> Bool {
    !self.source.isText || (-719_162...2_932_896).contains(day)
  }

  /// A date or time in the zone of the target.
  private func moment(ofCell cell: UInt64) -> TimeFormat.Moment {
    let number = Int64(bitPattern: cell)
    switch self.source {
    case .timestamp(let unit, let isLocal):
      let (whole, part) = number.flooredDivision(by: unit.perSecond)
      let (day, seconds) = (whole + (isLocal ? 0 : self.target.offset)).flooredDivision(by: 86_400)
      return TimeFormat.Moment(
        day: day, seconds: seconds, nanoseconds: part * (1_000_000_000 / unit.perSecond),
        offset: self.target.offset)
    case .date(.milliseconds):
      return TimeFormat.Moment(
        day: number.flooredDivision(by: 86_400_000).quotient, offset: self.target.offset)
    default: return TimeFormat.Moment(day: number, offset: self.target.offset)
    }
  }

  private func moment(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer
  ) -> TimeFormat.Moment? {
    guard self.source.isText else { return self.moment(ofCell: cell) }
    ValueText.append(cell, self.source, row, lost: [], to: &buffer)
    defer { buffer.removeAll() }
    let text = UnsafeRawBufferPointer(buffer.bytes)
    guard let format = self.target.format else { return TimeFormat.readISO(text) }
    return format.read(text)
  }

  private func timestamp(
    _ cell: UInt64, _ row: RecordBatch.Row, _ buffer: inout ByteBuffer
  ) -> Outcome {
    if case .timestamp(let unit, let isLocal) = self.source {
      guard isLocal else { return .number(cell) }
      let offset = self.target.offset * unit.perSecond
      let (value, overflow) = Int64(bitPattern: cell).subtractingReportingOverflow(offset)
      return overflow ? self.beyond : .number(UInt64(bitPattern: value))
    }
    guard let moment = self.moment(cell, row, &buffer) else { return self.notATime }
    guard moment.nanoseconds % 1000 == 0 else {
      return .failed("the value has more than six decimal places in the seconds")
    }
    let seconds = moment.day.multipliedReportingOverflow(by: 86_400)
    let (whole, overflow) =
      (seconds.partialValue + moment.seconds - (moment.offset ?? self.target.offset))
      .multipliedReportingOverflow(by: 1_000_000)
    let (sum, isBeyond) = whole.addingReportingOverflow(moment.nanoseconds / 1000)
    guard !seconds.overflow, !overflow, !isBeyond else { return self.beyond }
    guard self.isReadable(day: sum.flooredDivision(by: 86_400_000_000).quotient) else {
      return Self.unreadableYear
    }
    return .number(UInt64(bitPattern: sum))
  }
}

extension ColumnType {
  fileprivate var isInteger: Bool { self == .int32 || self == .int64 }

  fileprivate var isNumber: Bool {
    switch self {
    case .int32, .int64, .float, .double, .decimal: true
    default: false
    }
  }

  fileprivate var hasDate: Bool {
    switch self {
    case .date, .timestamp: true
    default: false
    }
  }
}
